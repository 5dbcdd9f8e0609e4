package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// podsEach are on each node of the bystanders.
	podsEach = 10
	// bystanderPatience is how long a node of the bystanders may take to join, and its pods to run.
	bystanderPatience = time.Second
)

// gather waits for the nodes of the bystanders, and fills them with pods of a namespace of their own.
func (s *soak) gather(nodes int) error {
	if nodes == 0 {
		return nil
	}
	patience := time.Duration(nodes) * bystanderPatience
	s.hold("the bystanders' nodes do not come", patience, func() ([]string, error) { return s.missing(nodes) })
	if err := s.makeNamespace(bystanders); err != nil {
		return err
	}
	var pods []*corev1.Pod
	for i := range nodes * podsEach {
		p := bare(fmt.Sprintf("bystander-%05d", i), bystanders)
		p.Namespace = bystanders
		pods = append(pods, p)
	}
	if err := s.createAll(pods); err != nil {
		return err
	}
	s.hold("the bystanders' pods do not run", patience, func() ([]string, error) {
		waiting, err := s.w.Client.CoreV1().Pods(bystanders).List(s.ctx, metav1.ListOptions{FieldSelector: "status.phase!=Running"})
		if err != nil {
			return nil, err
		}
		return restlessPods(waiting.Items), nil
	})
	return s.ctx.Err()
}

// missing says how many nodes of the bystanders are not Ready.
func (s *soak) missing(of int) ([]string, error) {
	nodes, err := s.w.Client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{LabelSelector: labelGroup + "=" + bystanders})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		if ready(&nodes.Items[i]) {
			of--
		}
	}
	if of > 0 {
		return []string{fmt.Sprintf("%d nodes are not Ready", of)}, nil
	}
	return nil, nil
}
