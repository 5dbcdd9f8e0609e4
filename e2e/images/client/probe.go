package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// metadata is where an instance finds what EC2 knows of it.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
const metadata = "http://169.254.169.254"

// probe asks for a token of version 2 of the instance metadata service and then,
// with it, who the instance is. It prints one line of what came; an error says
// that no token did.
func probe(ctx context.Context, url string, timeout time.Duration, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	token, err := request(ctx, http.MethodPut, url+"/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
	if err != nil {
		fmt.Fprintln(out, "no token:", err)
		return fmt.Errorf("no token: %w", err)
	}
	instance, err := request(ctx, http.MethodGet, url+"/latest/meta-data/instance-id", "X-aws-ec2-metadata-token", token)
	if err != nil {
		return fmt.Errorf("a token, and no instance id with it: %w", err)
	}
	fmt.Fprintln(out, "token: of", instance)
	return nil
}

// request returns the text of an answer that is 200.
func request(ctx context.Context, method, url, header, value string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set(header, value)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %s: %s", method, url, response.Status)
	}
	return string(body), nil
}
