package wire

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
)

// Protocol is how a service writes its answers.
type Protocol int

// Protocols of the services that the fake speaks.
const (
	Query Protocol = iota
	EC2
	JSON
)

// Service is a service with its protocol.
type Service struct {
	Name      string // as in the credential scope: autoscaling, ec2, eks, sts
	Protocol  Protocol
	Version   string
	Namespace string
}

// The services.
var (
	AutoScaling = Service{Name: "autoscaling", Protocol: Query, Version: "2011-01-01", Namespace: "http://autoscaling.amazonaws.com/doc/2011-01-01/"}
	EC2Service  = Service{Name: "ec2", Protocol: EC2, Version: "2016-11-15", Namespace: "http://ec2.amazonaws.com/doc/2016-11-15/"}
	STS         = Service{Name: "sts", Protocol: Query, Version: "2011-06-15", Namespace: "https://sts.amazonaws.com/doc/2011-06-15/"}
	EKS         = Service{Name: "eks", Protocol: JSON}
)

// ServiceNamed finds a service by the name in a credential scope.
func ServiceNamed(name string) (Service, bool) {
	for _, s := range []Service{AutoScaling, EC2Service, STS, EKS} {
		if s.Name == name {
			return s, true
		}
	}
	return Service{}, false
}

// Time is written as AWS writes times; the zero time is left out where the field says omitempty.
type Time struct{ time.Time }

// At makes a Time for a field that may be missing.
func At(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	return &Time{t}
}

// MarshalText is used by XML.
func (t Time) MarshalText() ([]byte, error) {
	return []byte(t.UTC().Format("2006-01-02T15:04:05.000Z")), nil
}

// Tag is a tag as EC2 writes it.
type Tag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

// WriteAnswer writes the answer of an operation.
func (s Service) WriteAnswer(w http.ResponseWriter, operation, requestID string, answer any) error {
	w.Header().Set("X-Amzn-Requestid", requestID)
	if s.Protocol == JSON {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(answer)
	}
	inner, err := innerXML(answer)
	if err != nil {
		return fmt.Errorf("writing the answer of %s: %w", operation, err)
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	if s.Protocol == EC2 {
		_, err = fmt.Fprintf(w, "%s<%sResponse xmlns=%q><requestId>%s</requestId>%s</%[2]sResponse>", xml.Header, operation, s.Namespace, requestID, inner)
		return err
	}
	_, err = fmt.Fprintf(w, "<%sResponse xmlns=%q><%[1]sResult>%[3]s</%[1]sResult><ResponseMetadata><RequestId>%[4]s</RequestId></ResponseMetadata></%[1]sResponse>",
		operation, s.Namespace, inner, requestID)
	return err
}

// innerXML is the XML of a structure without its own element, whose name the protocols make from that of the operation.
func innerXML(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	var buf bytes.Buffer
	if err := xml.NewEncoder(&buf).EncodeElement(v, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		return nil, err
	}
	inner := bytes.TrimSuffix(bytes.TrimPrefix(buf.Bytes(), []byte("<x>")), []byte("</x>"))
	return inner, nil
}

// ErrorOf is the AWS error in err; any other error is an internal failure.
func ErrorOf(err error) *cloud.Error {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e
	}
	return cloud.Errorf(http.StatusInternalServerError, "InternalFailure", "%v", err)
}

// WriteError writes an error in the form of the service.
func (s Service) WriteError(w http.ResponseWriter, requestID string, e *cloud.Error) error {
	w.Header().Set("X-Amzn-Requestid", requestID)
	switch s.Protocol {
	case JSON:
		return writeJSONError(w, e)
	case EC2:
		return s.writeEC2Error(w, requestID, e)
	}
	return s.writeQueryError(w, requestID, e)
}

func writeJSONError(w http.ResponseWriter, e *cloud.Error) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", e.Code)
	w.WriteHeader(e.Status)
	return json.NewEncoder(w).Encode(map[string]string{"__type": e.Code, "message": e.Message})
}

func (s Service) writeEC2Error(w http.ResponseWriter, requestID string, e *cloud.Error) error {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(e.Status)
	_, err := fmt.Fprintf(w, "%s<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>",
		xml.Header, escape(e.Code), escape(e.Message), requestID)
	return err
}

func (s Service) writeQueryError(w http.ResponseWriter, requestID string, e *cloud.Error) error {
	fault := "Sender"
	if e.Status >= http.StatusInternalServerError {
		fault = "Receiver"
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(e.Status)
	_, err := fmt.Fprintf(w, "<ErrorResponse xmlns=%q><Error><Type>%s</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>",
		s.Namespace, fault, escape(e.Code), escape(e.Message), requestID)
	return err
}

func escape(s string) string {
	var buf bytes.Buffer
	if err := xml.EscapeText(&buf, []byte(s)); err != nil {
		return s // A bytes.Buffer takes everything.
	}
	return buf.String()
}
