package evict

import (
	"encoding/json"
	"net/http"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// The agent's account asks the server who it is, under its own name, and never as its node.
func TestUserName(t *testing.T) {
	const user = "system:serviceaccount:elsewhere:drainer"
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.SelfSubjectReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Kind != "SelfSubjectReview" || review.APIVersion != "authentication.k8s.io/v1" ||
			r.Method != http.MethodPost || r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" || r.Header.Get("Impersonate-User") != "" {
			t.Errorf("asked %s %s %+v: %v", r.Method, r.URL, review, err)
		}
		review.Status.UserInfo.Username = user
		write(w, http.StatusCreated, review)
	}))
	got, err := c.UserName(t.Context())
	if err != nil || got != user {
		t.Errorf("%q, %v", got, err)
	}
}
