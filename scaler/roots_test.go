package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// In an image from scratch there is no file of certificates. The scaler knows the
// root of AWS's endpoints all the same.
func TestTrustsAWSWithoutFiles(t *testing.T) {
	if os.Getenv("SSL_CERT_FILE") != os.DevNull {
		// Package crypto/x509 reads the system's certificates once in a process.
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		again.Env = append(os.Environ(), "SSL_CERT_FILE="+os.DevNull, "SSL_CERT_DIR="+t.TempDir())
		if out, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	for root := range bundle.Roots() {
		certificate, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if certificate.Subject.CommonName != "Amazon Root CA 1" {
			continue
		}
		if _, err := certificate.Verify(x509.VerifyOptions{}); err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("the bundle lacks Amazon Root CA 1")
}
