// Package config reads the notifier's one file: which services there are, and which of them is
// sent what.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/notifier/delivery"
	"windlass.dev/windlass/notifier/happening"
	"windlass.dev/windlass/notifier/render"
)

// File is what stands in the file. What it calls a secret is the name of a file in the folder of
// the Secret.
type File struct {
	Services []Service `json:"services"`
	// Routes say which service is sent what; without any, each is sent all.
	Routes []Route `json:"routes,omitempty"`
}

// Service is one, of exactly one type.
type Service struct {
	Name        string       `json:"name"`
	Slack       *Slack       `json:"slack,omitempty"`
	Webhook     *Webhook     `json:"webhook,omitempty"`
	Shoutrrr    *Shoutrrr    `json:"shoutrrr,omitempty"`
	SNS         *SNS         `json:"sns,omitempty"`
	CloudEvents *CloudEvents `json:"cloudEvents,omitempty"`
	// Template says it in the user's words; see render.Data.
	Template string `json:"template,omitempty"`
	// Digest is when the daily summary comes.
	Digest *Digest `json:"digest,omitempty"`

	Parsed *render.Template `json:"-"`
}

// Slack posts as a bot, and changes what it posted.
type Slack struct {
	// Channel is its name or, better, its id.
	Channel string `json:"channel"`
	// Secret has the bot's token, with the scope chat:write.
	Secret string `json:"secret"`
	// URL of another API than Slack's own.
	URL string `json:"url,omitempty"`
}

// Webhook posts JSON, as Slack's incoming webhooks take it, or what the template makes.
type Webhook struct {
	// Secret has the URL.
	Secret string `json:"secret"`
}

// Shoutrrr posts to any service that shoutrrr knows.
type Shoutrrr struct {
	// Secret has shoutrrr's URL of the service.
	Secret string `json:"secret"`
}

// SNS publishes to a topic.
type SNS struct {
	Topic string `json:"topic"` // its ARN
	// URL of another endpoint than AWS's own.
	URL string `json:"url,omitempty"`
}

// CloudEvents posts structured events to a URL, given here or in a secret.
type CloudEvents struct {
	URL    string `json:"url,omitempty"`
	Secret string `json:"secret,omitempty"`
}

// Digest is a time of day.
type Digest struct {
	At   string `json:"at"`
	Zone string `json:"zone,omitempty"`
}

// Route leads happenings that fit to services.
type Route struct {
	To         []string         `json:"to"`
	Kinds      []happening.Kind `json:"kinds,omitempty"`
	Groups     []string         `json:"groups,omitempty"`
	Namespaces []string         `json:"namespaces,omitempty"`
	Severity   string           `json:"severity,omitempty"`
	QuietHours *QuietHours      `json:"quietHours,omitempty"`
}

// QuietHours of each day.
type QuietHours struct {
	From string `json:"from"`
	To   string `json:"to"`
	Zone string `json:"zone,omitempty"`
}

// The most of a list: what comes of each is kept for each service.
const mostServices, mostRoutes = 20, 100

// Parse reads the file. The error names all that is wrong.
func Parse(text []byte) (File, error) {
	var f File
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return File{}, fmt.Errorf("this is no configuration: %w", err)
	}
	return f, f.check()
}

var name = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (f *File) check() error {
	var wrong []error
	say := func(where, format string, a ...any) {
		wrong = append(wrong, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, a...)))
	}
	if len(f.Services) == 0 || len(f.Services) > mostServices {
		say("services", "there are %d: want 1 to %d", len(f.Services), mostServices)
	}
	if len(f.Routes) > mostRoutes {
		say("routes", "there are %d: want at most %d", len(f.Routes), mostRoutes)
	}
	var names []string
	for i := range f.Services {
		s := &f.Services[i]
		where := fmt.Sprintf("services[%d]", i)
		if !name.MatchString(s.Name) {
			say(where+".name", "%q: want a name of lower-case letters, digits and '-'", s.Name)
		} else {
			where = "service " + s.Name
		}
		if slices.Contains(names, s.Name) {
			say(where, "there are two of this name")
		}
		names = append(names, s.Name)
		for _, err := range s.check() {
			say(where, "%v", err)
		}
	}
	for i, r := range f.Routes {
		where := fmt.Sprintf("routes[%d]", i)
		for _, err := range r.check(names) {
			say(where, "%v", err)
		}
	}
	return errors.Join(wrong...)
}

func (s *Service) check() []error {
	var wrong []error
	types := 0
	secret := func(field, name string) {
		if name == "" || name != path.Base(name) || strings.HasPrefix(name, ".") {
			wrong = append(wrong, fmt.Errorf("%s.secret is %q: want the name of a key of the Secret", field, name))
		}
	}
	address := func(field, text string, must bool) {
		if u, err := url.Parse(text); text == "" && must || text != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			wrong = append(wrong, fmt.Errorf("%s.url is no URL such as https://example.com/", field))
		}
	}
	if x := s.Slack; x != nil {
		types++
		secret("slack", x.Secret)
		address("slack", x.URL, false)
		if x.Channel == "" {
			wrong = append(wrong, errors.New("slack.channel is empty: want a channel's name or id"))
		}
	}
	if x := s.Webhook; x != nil {
		types++
		secret("webhook", x.Secret)
	}
	if x := s.Shoutrrr; x != nil {
		types++
		secret("shoutrrr", x.Secret)
	}
	if x := s.SNS; x != nil {
		types++
		address("sns", x.URL, false)
		if _, err := Region(x.Topic); err != nil {
			wrong = append(wrong, err)
		}
	}
	if x := s.CloudEvents; x != nil {
		types++
		switch {
		case (x.URL == "") == (x.Secret == ""):
			wrong = append(wrong, errors.New("cloudEvents wants a url or a secret, and not both"))
		case x.Secret != "":
			secret("cloudEvents", x.Secret)
		default:
			address("cloudEvents", x.URL, true)
		}
	}
	if types != 1 {
		wrong = append(wrong, fmt.Errorf("it has %d types: want one of slack, webhook, shoutrrr, sns, cloudEvents", types))
	}
	if s.Template != "" {
		parsed, err := render.ParseTemplate(s.Name, s.Template)
		if err != nil {
			wrong = append(wrong, err)
		}
		s.Parsed = parsed
	}
	if d := s.Digest; d != nil {
		if _, err := timeOfDay(d.At); err != nil {
			wrong = append(wrong, fmt.Errorf("digest.at: %w", err))
		}
		if _, err := zone(d.Zone); err != nil {
			wrong = append(wrong, fmt.Errorf("digest.zone: %w", err))
		}
	}
	return wrong
}

// arn is how the one of a topic begins.
var arn = regexp.MustCompile(`^arn:aws[a-z-]*:sns:([a-z0-9-]+):\d{12}:[A-Za-z0-9_-]+(\.fifo)?$`)

// Region is that of a topic.
func Region(topic string) (string, error) {
	found := arn.FindStringSubmatch(topic)
	if found == nil {
		return "", fmt.Errorf("sns.topic is %q: want an ARN such as arn:aws:sns:eu-central-1:111122223333:windlass", topic)
	}
	return found[1], nil
}

func (r Route) check(services []string) []error {
	var wrong []error
	if len(r.To) == 0 {
		wrong = append(wrong, errors.New("to is empty: want names of services"))
	}
	for _, to := range r.To {
		if !slices.Contains(services, to) {
			wrong = append(wrong, fmt.Errorf("to names %q, which is no service: there are %s", to, strings.Join(services, ", ")))
		}
	}
	for _, k := range r.Kinds {
		if !slices.Contains(happening.Kinds, k) {
			wrong = append(wrong, fmt.Errorf("kinds has %q: want some of %v", k, happening.Kinds))
		}
	}
	for _, p := range slices.Concat(r.Groups, r.Namespaces) {
		if _, err := path.Match(p, ""); err != nil {
			wrong = append(wrong, fmt.Errorf("%q is no pattern such as web-*", p))
		}
	}
	if r.Severity != "" && !slices.Contains(happening.Severities, r.Severity) {
		wrong = append(wrong, fmt.Errorf("severity is %q: want one of %s", r.Severity, strings.Join(happening.Severities, ", ")))
	}
	if q := r.QuietHours; q != nil {
		for _, text := range []string{q.From, q.To} {
			if _, err := timeOfDay(text); err != nil {
				wrong = append(wrong, fmt.Errorf("quietHours: %w", err))
			}
		}
		if q.From == q.To {
			wrong = append(wrong, errors.New("quietHours begin as they end"))
		}
		if _, err := zone(q.Zone); err != nil {
			wrong = append(wrong, fmt.Errorf("quietHours.zone: %w", err))
		}
	}
	return wrong
}

func timeOfDay(text string) (time.Duration, error) {
	at, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time of day such as 22:00", text)
	}
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute, nil
}

func zone(text string) (*time.Location, error) {
	location, err := time.LoadLocation(text) // empty is UTC
	if err != nil || text == "Local" {
		return time.UTC, fmt.Errorf("%q is no time zone such as Europe/Berlin", text)
	}
	return location, nil
}

// Wants is what each service is to be sent, by its name.
func (f File) Wants() map[string]delivery.Want {
	wants := map[string]delivery.Want{}
	for _, s := range f.Services {
		want := delivery.Want{Updates: s.Slack != nil}
		if d := s.Digest; d != nil {
			at, _ := timeOfDay(d.At) // checked
			location, _ := zone(d.Zone)
			want.Digest = &delivery.Daily{At: at, Zone: location}
		}
		for _, r := range f.Routes {
			if slices.Contains(r.To, s.Name) {
				want.Routes = append(want.Routes, r.route())
			}
		}
		if len(f.Routes) == 0 {
			want.Routes = []delivery.Route{{}}
		}
		wants[s.Name] = want
	}
	return wants
}

func (r Route) route() delivery.Route {
	route := delivery.Route{Kinds: r.Kinds, Groups: r.Groups, Namespaces: r.Namespaces, Severity: happening.Severity(max(0, slices.Index(happening.Severities, r.Severity)))}
	if q := r.QuietHours; q != nil {
		from, _ := timeOfDay(q.From) // checked
		to, _ := timeOfDay(q.To)
		location, _ := zone(q.Zone)
		route.Quiet = &delivery.Hours{From: from, To: to, Zone: location}
	}
	return route
}
