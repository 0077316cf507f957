package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// decode knows every kind of the Kubernetes API. It refuses unknown and repeated fields and
// wrong types, but doesn't check the values of fields.
var decode = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

func lintChart(folder string, valueFiles []string) (findings []string, err error) {
	for _, file := range valueFiles {
		values, err := common.ReadValuesFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range lint.RunAll(folder, values, "default").Messages {
			if m.Severity > support.InfoSev {
				findings = append(findings, in(file, m))
			}
		}
		objects, err := render(folder, values)
		if err != nil {
			findings = append(findings, in(file, err))
		}
		if err == nil && len(objects) < 3 {
			findings = append(findings, in(file, fmt.Errorf("only %d objects", len(objects))))
		}
	}
	return findings, nil
}

// render returns the objects that the chart makes of the values.
func render(folder string, values common.Values) (objects []runtime.Object, err error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "door", Namespace: "default", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	texts, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if strings.TrimSpace(texts[name]) == "" || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		object, ok, err := decodeMonitoring([]byte(texts[name]))
		if !ok {
			object, _, err = decode.Decode([]byte(texts[name]), nil, nil)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
		objects = append(objects, object)
	}
	return objects, errors.Join(faults...)
}

func settings(folder, file string) (string, error) {
	values, err := common.ReadValuesFile(file)
	if err != nil {
		return "", err
	}
	objects, err := render(folder, values)
	if err != nil {
		return "", err
	}
	for _, o := range objects {
		if config, ok := o.(*corev1.ConfigMap); ok {
			return config.Data["doorward.yaml"], nil
		}
	}
	return "", errors.New("the chart makes no ConfigMap")
}
