package api

import (
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// sts are the operations of the Security Token Service that credential chains ask.
var sts = map[string]Handler{
	"GetCallerIdentity":         describing(callerIdentity),
	"AssumeRoleWithWebIdentity": changing(assumeRole),
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
func callerIdentity(c *cloud.Cloud, _ wire.Values) (any, error) {
	return struct {
		UserID  string `xml:"UserId"`
		Account string
		Arn     string
	}{"AROAFAKEFAKEFAKEFAKE:windlass", c.Account(), "arn:aws:sts::" + c.Account() + ":assumed-role/windlass/windlass"}, nil
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
func assumeRole(_ *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "RoleArn", "RoleSessionName", "WebIdentityToken"); err != nil {
		return nil, err
	}
	type credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		SessionToken    string
		Expiration      wire.Time
	}
	type user struct {
		Arn           string
		AssumedRoleID string `xml:"AssumedRoleId"`
	}
	return struct {
		Credentials                 credentials
		AssumedRoleUser             user
		SubjectFromWebIdentityToken string
	}{
		credentials{"ASIAFAKEFAKEFAKEFAKE", "fake", "fake", wire.Time{Time: now.Add(time.Hour)}},
		user{v.Get("RoleArn") + "/" + v.Get("RoleSessionName"), "AROAFAKEFAKEFAKEFAKE:" + v.Get("RoleSessionName")},
		"fake",
	}, nil
}
