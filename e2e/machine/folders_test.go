//go:build linux

package machine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Machines run wherever their files are, also below folders of the host's that a machine
// has for itself; and outside of those files they change nothing.
func TestFolders(t *testing.T) {
	if !insideCluster(t) {
		return
	}
	const others = "/opt" // of programs of the host's, and of containerd's when it may
	mountMemory(t, others)
	hub, err := OpenHub(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, parent := range []string{"/etc", "/run", "/var/lib", "/var/log"} {
		t.Run(parent, func(t *testing.T) { bootBelow(t, parent, hub) })
	}
	if made, err := os.ReadDir(others); err != nil || len(made) > 0 {
		t.Errorf("machines have made %v in %s (%v)", made, others, err)
	}
}

// bootBelow boots a machine of which everything is below a folder, without a cluster: its
// programs end at once and are started again.
func bootBelow(t *testing.T, parent string, hub *Hub) {
	dir, err := os.MkdirTemp(parent, "windlass-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	mountMemory(t, dir)
	c := Config{
		Dir: filepath.Join(dir, "machines"), Server: "https://" + Address.String(),
		CA: filepath.Join(dir, "ca.crt"), CAKey: filepath.Join(dir, "ca.key"),
		Boot: filepath.Join(dir, "boot"), Kubelet: filepath.Join(dir, "a-kubelet"), KubeProxy: filepath.Join(dir, "a-kube-proxy"),
		Images: []string{filepath.Join(dir, "e2e-pause.tar")},
		Hub:    hub, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	writeAuthority(t, c.CA, c.CAKey)
	copyFile(t, built("boot"), c.Boot)
	copyFile(t, built("e2e-pause.tar"), c.Images[0])
	copyFile(t, "/bin/true", c.Kubelet)
	copyFile(t, "/bin/true", c.KubeProxy)
	y, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := y.Close(); err != nil {
			t.Error(err)
		}
	}()
	spec := specOf(1)
	if err := y.PowerOn(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"boot", containerdName, kubeletName, kubeProxyName} {
		if _, err := os.Stat(filepath.Join(c.Dir, spec.ID, logsFolder, program+".log")); err != nil {
			t.Error(err)
		}
	}
}

// mountMemory lays an empty file system over a folder until the test ends.
func mountMemory(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// writeAuthority makes a certificate by which an authority signs.
func writeAuthority(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, about, about, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := write(file, pem.EncodeToMemory(block)); err != nil {
			t.Fatal(err)
		}
	}
}

// copyFile copies a program or an archive.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
