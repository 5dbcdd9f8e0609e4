package monitoring

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Dashboard is what we use of Grafana's schema 39 of dashboards; a field that is not here is an
// error. Grafana leaves out what it does not know, and nobody is told.
// https://github.com/grafana/grafana/blob/v11.0.0/kinds/dashboard/dashboard_kind.cue
type Dashboard struct {
	Title         string   `json:"title"`
	UID           string   `json:"uid"`
	Tags          []string `json:"tags"`
	SchemaVersion int      `json:"schemaVersion"`
	Version       int      `json:"version"`
	Editable      bool     `json:"editable"`
	Timezone      string   `json:"timezone"`
	Refresh       string   `json:"refresh"`
	Time          struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"time"`
	Templating struct {
		List []Variable `json:"list"`
	} `json:"templating"`
	Annotations struct {
		List []struct{} `json:"list"`
	} `json:"annotations"`
	Panels []Panel `json:"panels"`
}

// Variable is one that people choose a value of.
type Variable struct {
	Name       string          `json:"name"`
	Type       string          `json:"type"`
	Label      string          `json:"label"`
	Datasource *DataSource     `json:"datasource,omitempty"`
	Query      json.RawMessage `json:"query"` // a text, or an object where a data source is asked
	Refresh    int             `json:"refresh"`
	Multi      bool            `json:"multi"`
	IncludeAll bool            `json:"includeAll"`
	AllValue   string          `json:"allValue"`
	Current    struct {
		Text  string `json:"text"`
		Value string `json:"value"`
	} `json:"current"`
}

// DataSource is a reference to one.
type DataSource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

// Panel is one, or a row of them.
type Panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Datasource  *DataSource `json:"datasource,omitempty"`
	GridPos     struct {
		X int `json:"x"`
		Y int `json:"y"`
		W int `json:"w"`
		H int `json:"h"`
	} `json:"gridPos"`
	Collapsed   *bool       `json:"collapsed,omitempty"`
	Panels      *[]struct{} `json:"panels,omitempty"`
	Targets     []Target    `json:"targets"`
	Options     Options     `json:"options"`
	FieldConfig *struct {
		Defaults  Field      `json:"defaults"`
		Overrides []struct{} `json:"overrides"`
	} `json:"fieldConfig"`
	Transformations []struct {
		ID      string `json:"id"`
		Options struct {
			ExcludeByName map[string]bool `json:"excludeByName"`
		} `json:"options"`
	} `json:"transformations"`
}

// Target is a query.
type Target struct {
	RefID        string `json:"refId"`
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
	Instant      bool   `json:"instant"`
	Format       string `json:"format"`
}

// Options are those of stat and of timeseries.
type Options struct {
	ReduceOptions *struct {
		Calcs []string `json:"calcs"`
	} `json:"reduceOptions,omitempty"`
	ColorMode string `json:"colorMode"`
	Legend    *struct {
		DisplayMode string `json:"displayMode"`
		Placement   string `json:"placement"`
	} `json:"legend,omitempty"`
	Tooltip *struct {
		Mode string `json:"mode"`
		Sort string `json:"sort"`
	} `json:"tooltip,omitempty"`
}

// Field is how values are shown.
type Field struct {
	Unit       string   `json:"unit"`
	Min        *float64 `json:"min,omitempty"`
	Max        *float64 `json:"max,omitempty"`
	Thresholds *struct {
		Mode  string `json:"mode"`
		Steps []struct {
			Color string   `json:"color"`
			Value *float64 `json:"value"`
		} `json:"steps"`
	} `json:"thresholds,omitempty"`
	Custom *struct {
		FillOpacity int    `json:"fillOpacity"`
		ShowPoints  string `json:"showPoints"`
		Stacking    *struct {
			Mode string `json:"mode"`
		} `json:"stacking,omitempty"`
	} `json:"custom,omitempty"`
}

// ReadDashboard reads the file at path.
func ReadDashboard(path string) (Dashboard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Dashboard{}, err
	}
	var board Dashboard
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&board); err != nil {
		return Dashboard{}, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Dashboard{}, fmt.Errorf("%s: there is more after the dashboard", path)
	}
	return board, nil
}

// variables get what Grafana would put in their place.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$group", ".*")

// Panels are the expressions of the dashboard at path.
func Panels(path string) ([]Question, error) {
	board, err := ReadDashboard(path)
	if err != nil {
		return nil, err
	}
	var all []Question
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, Question{"panel " + panel.Title, variables.Replace(target.Expr)})
		}
	}
	return all, nil
}
