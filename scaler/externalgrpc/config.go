package externalgrpc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"windlass.dev/windlass/scaler/externalgrpc/protocol"
)

// FlagConfig names the file of the connection.
const FlagConfig = "--cloud-config"

// Config is the connection to a provider, in the keys of Cluster Autoscaler's cloud-config.
type Config struct {
	// Address is host:port.
	Address string `json:"address"`
	// Key and Cert are files by which the provider knows us, Cacert is one of the authority by
	// which we know the provider. Without Cert and Cacert the connection is not encrypted.
	Key    string `json:"key"`
	Cert   string `json:"cert"`
	Cacert string `json:"cacert"`
	// Timeout is how long one call may take.
	Timeout *metav1.Duration `json:"grpc_timeout,omitempty"`
}

const (
	// usualTimeout is Cluster Autoscaler's.
	usualTimeout = 5 * time.Second
	// mostTimeout is less than an action may take, which makes two reading calls before its own.
	mostTimeout = time.Minute
)

// ReadConfig reads the file of --cloud-config. Its errors name the file and the key.
func ReadConfig(file string) (Config, error) {
	if file == "" {
		return Config{}, fmt.Errorf("%s is missing: name a file with the provider's address, and with the files of its certificates", FlagConfig)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", FlagConfig, err)
	}
	var c Config
	if err := yaml.UnmarshalStrict(text, &c); err != nil {
		return Config{}, fmt.Errorf("%s=%s: want YAML with address, key, cert, cacert and grpc_timeout: %w", FlagConfig, file, err)
	}
	if err := c.check(); err != nil {
		return Config{}, fmt.Errorf("%s=%s: %w", FlagConfig, file, err)
	}
	return c, nil
}

func (c Config) check() error {
	var wrong []error
	if host, port, err := net.SplitHostPort(c.Address); err != nil || host == "" || port == "" {
		wrong = append(wrong, fmt.Errorf("address %q: want host:port", c.Address))
	}
	if (c.Key == "") != (c.Cert == "") {
		wrong = append(wrong, errors.New("key and cert belong together: name both, or none"))
	}
	if c.Cert != "" && c.Cacert == "" {
		wrong = append(wrong, errors.New("cert needs cacert, the authority of the provider's certificate"))
	}
	if t := c.timeout(); t <= 0 || t > mostTimeout {
		wrong = append(wrong, fmt.Errorf("grpc_timeout %s: want more than 0 and at most %s", t, mostTimeout))
	}
	return errors.Join(wrong...)
}

func (c Config) timeout() time.Duration {
	if c.Timeout == nil {
		return usualTimeout
	}
	return c.Timeout.Duration
}

// Encrypted reports whether the connection is.
func (c Config) Encrypted() bool { return c.Cacert != "" }

const (
	// mostBytes is how large an answer may be: some ten thousand machines.
	mostBytes = 4 << 20
	// mostBytesOfInstances is that of one with the instances of a group.
	mostBytesOfInstances = 2 << 20
	// reconnect is the longest wait before a provider that is away is tried again.
	reconnect = 5 * time.Second
	// alive is how often a silent provider is asked for a sign of life, not more often than
	// servers allow, and deaf after what a connection is given up on which nothing is confirmed.
	alive, deaf = 5 * time.Minute, 20 * time.Second
)

// Dial prepares the connection; the provider is not called. record, if not nil, is called for
// every call. The key pair is read again for each connection, so that it may be renewed.
func Dial(c Config, record func(Call)) (*Provider, error) {
	creds, err := c.credentials()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", FlagConfig, err)
	}
	connection, err := grpc.NewClient(c.Address,
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostBytes)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnect}, MinConnectTimeout: reconnect}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: alive, Timeout: deaf}),
		// A call is never repeated: what it did shows in the next reading.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: address %s: %w", FlagConfig, c.Address, err)
	}
	if record == nil {
		record = func(Call) {}
	}
	return &Provider{Address: c.Address, client: protocol.NewCloudProviderClient(connection), connection: connection, timeout: c.timeout(), record: record}, nil
}

func (c Config) credentials() (credentials.TransportCredentials, error) {
	if !c.Encrypted() {
		return insecure.NewCredentials(), nil
	}
	authority, err := os.ReadFile(c.Cacert)
	if err != nil {
		return nil, fmt.Errorf("cacert: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("cacert: %s has no certificate in PEM", c.Cacert)
	}
	host, _, _ := net.SplitHostPort(c.Address) // check has done so
	config := &tls.Config{ServerName: host, RootCAs: pool, MinVersion: tls.VersionTLS12}
	if c.Cert == "" {
		return credentials.NewTLS(config), nil
	}
	pair := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("cert %s with key %s: %w", c.Cert, c.Key, err)
		}
		return &pair, nil
	}
	if _, err := pair(); err != nil {
		return nil, err
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair() }
	return credentials.NewTLS(config), nil
}
