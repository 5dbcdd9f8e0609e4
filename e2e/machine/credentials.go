package machine

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"time"
)

// authority signs what machines present to the API server and it to them.
type authority struct {
	certificate *x509.Certificate
	pem         []byte
	key         crypto.PrivateKey
}

func loadAuthority(certificate, key string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("loading the cluster's authority: %w", err)
	}
	content, err := os.ReadFile(certificate)
	if err != nil {
		return nil, fmt.Errorf("loading the cluster's authority: %w", err)
	}
	return &authority{certificate: pair.Leaf, pem: content, key: pair.PrivateKey}, nil
}

// pair is a certificate and its key, as PEM.
type pair struct{ certificate, key []byte }

// client makes what a user of the API presents, with the groups that it is of.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server makes what a kubelet presents to those that ask it.
func (a *authority) server(name string, ip netip.Addr) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{name},
		IPAddresses: []net.IP{ip.AsSlice()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// issue completes a template and signs it, for a week.
func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return pair{}, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(7*24*time.Hour)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
	}, nil
}

// kubeconfig is a file by which a client finds the API server and is known to it.
func (a *authority) kubeconfig(server string, user pair) ([]byte, error) {
	type object = map[string]any
	encode := base64.StdEncoding.EncodeToString
	const name = "windlass"
	return json.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": name,
		"clusters": []object{{"name": name, "cluster": object{"server": server, "certificate-authority-data": encode(a.pem)}}},
		"users":    []object{{"name": name, "user": object{"client-certificate-data": encode(user.certificate), "client-key-data": encode(user.key)}}},
		"contexts": []object{{"name": name, "context": object{"cluster": name, "user": name}}},
	})
}
