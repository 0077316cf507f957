package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// monitoring is the group of the kinds of the Prometheus operator.
var monitoring = schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}

// podMonitor and prometheusRule have the fields of these kinds that the chart uses, as
// https://prometheus-operator.dev/docs/api-reference/api/ describes them.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port        string `json:"port"`
			Path        string `json:"path"`
			Interval    string `json:"interval"`
			Relabelings []struct {
				TargetLabel string `json:"targetLabel"`
				Replacement string `json:"replacement"`
			} `json:"relabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Groups []struct {
			Name     string `json:"name"`
			Interval string `json:"interval"`
			Rules    []struct {
				Alert       string            `json:"alert"`
				Record      string            `json:"record"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				KeepFor     string            `json:"keep_firing_for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object. Nothing here copies objects.
func (p *podMonitor) DeepCopyObject() runtime.Object { c := *p; return &c }

// DeepCopyObject implements runtime.Object. Nothing here copies objects.
func (p *prometheusRule) DeepCopyObject() runtime.Object { c := *p; return &c }

// decodeMonitoring decodes a kind of the Prometheus operator; false for any other object. It refuses
// unknown fields, and an object without what makes it useful.
func decodeMonitoring(text []byte) (runtime.Object, bool, error) {
	raw, err := yaml.ToJSON(text)
	if err != nil {
		return nil, false, nil //nolint:nilerr // the other decoder reports it
	}
	var kind metav1.TypeMeta
	if json.Unmarshal(raw, &kind) != nil || kind.GroupVersionKind().GroupVersion() != monitoring {
		return nil, false, nil
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.DisallowUnknownFields()
	switch kind.Kind {
	case "PodMonitor":
		p := new(podMonitor)
		if err = in.Decode(p); err == nil && (len(p.Spec.Selector.MatchLabels) == 0 || len(p.Spec.Endpoints) == 0) {
			err = errors.New("the PodMonitor selects no pods, or has no endpoint")
		}
		return p, true, err
	case "PrometheusRule":
		p := new(prometheusRule)
		if err = in.Decode(p); err == nil && (len(p.Spec.Groups) == 0 || len(p.Spec.Groups[0].Rules) == 0) {
			err = errors.New("the PrometheusRule has no rules")
		}
		return p, true, err
	}
	return nil, true, fmt.Errorf("the kind %s isn't known", kind.Kind)
}
