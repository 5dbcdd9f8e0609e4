package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// tasks is where containerd keeps a folder for each container that runs: its bundle
// (https://github.com/opencontainers/runtime-spec/blob/main/bundle.md) and the number of
// its first process.
const tasks = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"

// bundle is what is read of a container's configuration.
type bundle struct {
	Annotations map[string]string `json:"annotations"`
	Linux       struct {
		CgroupsPath string `json:"cgroupsPath"`
	} `json:"linux"`
}

// belongs reports whether it is that container of that pod.
func (b bundle) belongs(pod, container string) bool {
	return b.Annotations["io.kubernetes.cri.container-name"] == container &&
		strings.Contains(b.Linux.CgroupsPath, "/pod"+pod+"/")
}

// signalContainer sends a signal to the main process of a pod's container.
func signalContainer(pod, container string, signal syscall.Signal) error {
	configurations, err := filepath.Glob(filepath.Join(tasks, "*", "config.json"))
	if err != nil {
		return err
	}
	for _, file := range configurations {
		content, err := os.ReadFile(file)
		if os.IsNotExist(err) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return err
		}
		var b bundle
		if err := json.Unmarshal(content, &b); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if b.belongs(pod, container) {
			return signalMain(filepath.Dir(file), signal)
		}
	}
	return fmt.Errorf("no container %s of pod %s runs here", container, pod)
}

func signalMain(task string, signal syscall.Signal) error {
	content, err := os.ReadFile(filepath.Join(task, "init.pid"))
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("reading %s/init.pid: %w", task, err)
	}
	return syscall.Kill(pid, signal)
}
