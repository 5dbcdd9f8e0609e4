package api

import (
	"strings"
	"time"

	"windlass.dev/windlass/e2e/fakeaws/cloud"
	"windlass.dev/windlass/e2e/fakeaws/wire"
)

// sts are the operations of the Security Token Service that credential chains ask.
var sts = map[string]Handler{
	"GetCallerIdentity":         describing(callerIdentity),
	"AssumeRole":                changing(assumeRole),
	"AssumeRoleWithWebIdentity": changing(assumeRoleWithToken),
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html
func callerIdentity(c *cloud.Cloud, _ wire.Values) (any, error) {
	return struct {
		UserID  string `xml:"UserId"`
		Account string
		Arn     string
	}{"AROAFAKEFAKEFAKEFAKE:windlass", c.Account(), "arn:aws:sts::" + c.Account() + ":assumed-role/windlass/windlass"}, nil
}

type stsCredentials struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      wire.Time
}

type stsRoleUser struct {
	Arn           string
	AssumedRoleID string `xml:"AssumedRoleId"`
}

type stsAssumed struct {
	Credentials     stsCredentials
	AssumedRoleUser stsRoleUser
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
func assumeRole(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "RoleArn", "RoleSessionName"); err != nil {
		return nil, err
	}
	return assumed(c, v, now)
}

// assumed are credentials that last for the time asked for, an hour if none is.
func assumed(c *cloud.Cloud, v wire.Values, now time.Time) (stsAssumed, error) {
	seconds := 3600
	if v.Has("DurationSeconds") {
		var err error
		if seconds, err = within(v, "DurationSeconds", 900, 43200); err != nil {
			return stsAssumed{}, err
		}
	}
	role, session := v.Get("RoleArn"), v.Get("RoleSessionName")
	return stsAssumed{
		stsCredentials{"ASIAFAKEFAKEFAKEFAKE", "fake", "fake", wire.Time{Time: now.Add(time.Duration(seconds) * time.Second)}},
		stsRoleUser{"arn:aws:sts::" + c.Account() + ":assumed-role/" + role[strings.LastIndex(role, "/")+1:] + "/" + session, "AROAFAKEFAKEFAKEFAKE:" + session},
	}, nil
}

// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
func assumeRoleWithToken(c *cloud.Cloud, v wire.Values, now time.Time) (any, error) {
	if err := required(v, "RoleArn", "RoleSessionName", "WebIdentityToken"); err != nil {
		return nil, err
	}
	a, err := assumed(c, v, now)
	return struct {
		stsAssumed
		SubjectFromWebIdentityToken string
	}{a, "fake"}, err
}
