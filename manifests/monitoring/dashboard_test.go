package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// what Grafana knows of what we use. Units are the ids of its value formats, and a reference to a
// variable is $name or ${name}.
// https://github.com/grafana/grafana/blob/v11.0.0/packages/grafana-data/src/valueFormats/categories.ts
var (
	panelTypes = []string{"row", "stat", "table", "timeseries"}
	units      = []string{"bytes", "currencyUSD", "percentunit", "reqps", "s", "short"}
	reference  = regexp.MustCompile(`\$\{?(\w+)\}?`)
	legends    = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// TestDashboard: the file is what Grafana makes of it: no field that it does not know, no value
// that it takes for another, no panel above another, no variable that is not there.
func TestDashboard(t *testing.T) {
	board, err := ReadDashboard("../components/grafana/windlass.json")
	if err != nil {
		t.Fatal(err)
	}
	if board.Title == "" || !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`).MatchString(board.UID) || board.SchemaVersion != 39 || !regexp.MustCompile(`^[0-9]+[smh]$`).MatchString(board.Refresh) {
		t.Errorf("title %q, uid %q, schema version %d, refresh %q", board.Title, board.UID, board.SchemaVersion, board.Refresh)
	}
	variables := []string{"__rate_interval"}
	for _, v := range board.Templating.List {
		variables = append(variables, v.Name)
		if !slices.Contains([]string{"datasource", "query"}, v.Type) || v.Refresh < 0 || v.Refresh > 2 || v.Label == "" {
			t.Errorf("variable %+v", v)
		}
		var text string
		var object struct{ Query, RefID string }
		switch {
		case v.Type == "datasource" && (json.Unmarshal(v.Query, &text) != nil || text != "prometheus"):
			t.Errorf("variable %s is of the data source %s", v.Name, v.Query)
		case v.Type == "query" && (json.Unmarshal(v.Query, &object) != nil || object.Query == "" || object.RefID == "" || !ours(v.Datasource)):
			t.Errorf("variable %s asks %+v for %s", v.Name, v.Datasource, v.Query)
		}
	}
	if board.Panels[0].Type != "row" {
		t.Errorf("the first panel is no row: %s", board.Panels[0].Title)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for i := range board.Panels {
		p := &board.Panels[i]
		if ids[p.ID] || p.ID <= 0 {
			t.Errorf("%s: id %d is none, or another panel's", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > 24 {
			t.Errorf("%s lies at %+v, which is not within 24 columns", p.Title, g)
			continue
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Errorf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Title == "" || !slices.Contains(panelTypes, p.Type) {
			t.Errorf("panel %d: title %q, type %q", p.ID, p.Title, p.Type)
		}
		if p.Type == "row" {
			if p.Collapsed == nil || *p.Collapsed || p.Panels == nil || len(*p.Panels)+len(p.Targets) > 0 || p.GridPos.W != 24 || p.GridPos.H != 1 {
				t.Errorf("row %s has to be open, 24 wide and 1 high, with its panels below: %+v", p.Title, p)
			}
			continue
		}
		for _, found := range reference.FindAllStringSubmatch(p.Title, -1) {
			if !slices.Contains(variables, found[1]) {
				t.Errorf("%s: there is no variable %s", p.Title, found[1])
			}
		}
		holdTargets(t, p, variables)
		holdLook(t, p)
	}
}

func ours(d *DataSource) bool {
	return d != nil && d.Type == "prometheus" && d.UID == "${datasource}"
}

// holdTargets: each query has a letter of its own, variables that exist, and a legend that names
// labels that the answer has.
func holdTargets(t *testing.T, p *Panel, variables []string) {
	t.Helper()
	if !ours(p.Datasource) || len(p.Targets) == 0 {
		t.Errorf("%s asks %+v, %d times", p.Title, p.Datasource, len(p.Targets))
	}
	letters := map[string]bool{}
	for _, target := range p.Targets {
		if letters[target.RefID] || target.RefID == "" {
			t.Errorf("%s: refId %q is none, or another's", p.Title, target.RefID)
		}
		letters[target.RefID] = true
		if table := p.Type == "table"; table != (target.Format == "table") || table != target.Instant || !table && target.Format != "" {
			t.Errorf("%s is a %s with the format %q, instant %v", p.Title, p.Type, target.Format, target.Instant)
		}
		for _, found := range reference.FindAllStringSubmatch(target.Expr, -1) {
			if !slices.Contains(variables, found[1]) {
				t.Errorf("%s: there is no variable %s", p.Title, found[1])
			}
		}
		_, by, err := Uses(strings.NewReplacer("$__rate_interval", "5m", "$group", ".*").Replace(target.Expr))
		if err != nil {
			t.Errorf("%s: %v", p.Title, err)
		}
		for _, found := range legends.FindAllStringSubmatch(target.LegendFormat, -1) {
			if !slices.Contains(by, found[1]) {
				t.Errorf("%s: the legend has %s, which the answer has not", p.Title, found[1])
			}
		}
	}
}

// holdLook: each value is one that Grafana has.
func holdLook(t *testing.T, p *Panel) {
	t.Helper()
	one := func(what, value string, of ...string) {
		if !slices.Contains(of, value) {
			t.Errorf("%s: %s is %q, which is none of %v", p.Title, what, value, of)
		}
	}
	if p.FieldConfig == nil {
		t.Errorf("%s has no fieldConfig, so no unit", p.Title)
		return
	}
	f := p.FieldConfig.Defaults
	one("unit", f.Unit, units...)
	if p.Type == "stat" {
		if p.Options.ReduceOptions == nil || !slices.Equal(p.Options.ReduceOptions.Calcs, []string{"lastNotNull"}) || f.Thresholds == nil {
			t.Errorf("%s has to show the last value, by thresholds", p.Title)
			return
		}
		one("colorMode", p.Options.ColorMode, "value", "background", "none")
		one("thresholds.mode", f.Thresholds.Mode, "absolute")
		for i, step := range f.Thresholds.Steps {
			one("color", step.Color, "green", "red", "yellow")
			if (i == 0) != (step.Value == nil) || i > 1 && *step.Value <= *f.Thresholds.Steps[i-1].Value {
				t.Errorf("%s: step %d of its thresholds is not above the one before, the first being without a value", p.Title, i)
			}
		}
	}
	if p.Type == "timeseries" {
		if p.Options.Legend == nil || p.Options.Tooltip == nil || f.Custom == nil || f.Min == nil {
			t.Errorf("%s lacks a legend, a tooltip, its looks or a least value", p.Title)
			return
		}
		one("legend.displayMode", p.Options.Legend.DisplayMode, "list", "table", "hidden")
		one("legend.placement", p.Options.Legend.Placement, "bottom", "right")
		one("tooltip.mode", p.Options.Tooltip.Mode, "single", "multi", "none")
		one("tooltip.sort", p.Options.Tooltip.Sort, "none", "asc", "desc")
		one("showPoints", f.Custom.ShowPoints, "auto", "never", "always")
		if s := f.Custom.Stacking; s != nil {
			one("stacking.mode", s.Mode, "none", "normal", "percent")
		}
		if o := f.Custom.FillOpacity; o < 0 || o > 100 {
			t.Errorf("%s: fillOpacity %d", p.Title, o)
		}
	}
	for _, x := range p.Transformations {
		one("transformation", x.ID, "organize")
	}
}

// A dashboard with a word that Grafana does not have is refused.
func TestDashboardIsReadStrictly(t *testing.T) {
	text, err := os.ReadFile("../components/grafana/windlass.json")
	if err != nil {
		t.Fatal(err)
	}
	for old, changed := range map[string]string{`"gridPos"`: `"gridpos_"`, `"unit"`: `"units"`, `"legendFormat"`: `"legend"`, `"schemaVersion": 39`: `"schemaVersion": "39"`} {
		file := filepath.Join(t.TempDir(), "board.json")
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, changed, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadDashboard(file); err == nil {
			t.Errorf("%s in place of %s was read", changed, old)
		}
	}
	file := filepath.Join(t.TempDir(), "board.json")
	if err := os.WriteFile(file, append(text, "{}"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDashboard(file); err == nil {
		t.Error("two dashboards in a file were read")
	}
}
