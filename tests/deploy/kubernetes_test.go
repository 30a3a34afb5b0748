package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/tests/compare"
)

// object is what of Kubernetes' objects is looked at.
type object struct {
	Kind       string
	Metadata   struct{ Name string }
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Replicas       int
		ServiceName    string      `yaml:"serviceName"`
		MaxUnavailable int         `yaml:"maxUnavailable"`
		Pods           podSelector `yaml:"podSelector"` // of a network policy, as what follows
		PolicyTypes    []string    `yaml:"policyTypes"`
		Ingress        []struct {
			From []struct {
				Pods podSelector `yaml:"podSelector"`
			}
			Ports []struct{ Port string }
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []container
				Volumes    []struct{ Name string }
			}
		}
	}
}

type container struct {
	Args  []string
	Ports []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Env []struct {
		Name, Value string
		From        struct {
			Secret struct {
				Name, Key string
				Optional  bool
			} `yaml:"secretKeyRef"`
			Field struct {
				Path string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
		} `yaml:"valueFrom"`
	}
	Lifecycle struct {
		PreStop struct {
			Sleep struct{ Seconds int }
		} `yaml:"preStop"`
	}
	Startup   probe `yaml:"startupProbe"`
	Liveness  probe `yaml:"livenessProbe"`
	Readiness probe `yaml:"readinessProbe"`
	Mounts    []struct {
		Name string
		Path string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	Get     struct{ Path, Port string } `yaml:"httpGet"`
	Timeout int                         `yaml:"timeoutSeconds"`
}

// one returns the object of the kind and name.
func one(t *testing.T, all []object, kind, name string) object {
	t.Helper()
	for _, o := range all {
		if o.Kind == kind && o.Metadata.Name == name {
			return o
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return object{}
}

// environment returns the variables of a pod with the name, secrets filled in.
func environment(t *testing.T, c container, pod string, secret object) map[string]string {
	t.Helper()
	env := image(t)
	for _, e := range c.Env {
		switch {
		case e.From.Secret.Key != "":
			value, ok := secret.StringData[e.From.Secret.Key]
			if !ok && !e.From.Secret.Optional || e.From.Secret.Name != secret.Metadata.Name {
				t.Errorf("%s: there is no secret %s/%s", e.Name, e.From.Secret.Name, e.From.Secret.Key)
			}
			if env[e.Name] = value; value == "" {
				env[e.Name] = operatorValue(e.Name)
			}
		case e.From.Field.Path == "metadata.name":
			env[e.Name] = pod
		default:
			env[e.Name] = e.Value
		}
	}
	return env
}

// TestKubernetes: each pod starts with its settings, is found by the others, probed where
// there is an answer, and not killed before it has stopped.
func TestKubernetes(t *testing.T) {
	t.Parallel()
	all := documents[object](t, "kubernetes.yaml")
	set, secret := one(t, all, "StatefulSet", "bobbin"), one(t, all, "Secret", "bobbin")
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	names := map[string]bool{}
	for n := range set.Spec.Replicas {
		name := "bobbin-" + string(rune('0'+n))
		cfg := loaded(t, name, environment(t, c, name, secret), nil)
		enough(t, name, time.Duration(pod.Grace-c.Lifecycle.PreStop.Sleep.Seconds)*time.Second, cfg.Limits.ShutdownGrace)
		names[cfg.Replica.Name] = true
		compare.Contains(t, "the others look for", name+"."+set.Spec.ServiceName+":6222", strings.Join(cfg.NATS.Peers, ","))
		if c.Mounts[0].Path != cfg.DataDir || c.Mounts[0].Name != pod.Volumes[0].Name || !strings.HasSuffix(cfg.Addr, ":8080") {
			t.Errorf("%s writes to %s and listens on %s; mounted is %+v", name, cfg.DataDir, cfg.Addr, c.Mounts)
		}
	}
	delete(secret.StringData, "openai-api-key") // as its comment allows
	environment(t, c, "bobbin-0", secret)
	compare.True(t, len(names) == 3 && c.Args[0] == "serve", "got %d names of replicas and %v, want 3 that serve", len(names), c.Args)
	for path, p := range map[string][]probe{"/healthz": {c.Startup, c.Liveness}, "/readyz": {c.Readiness}} {
		for _, p := range p {
			compare.True(t, p.Get.Path == path && p.Get.Port == "http" && p.Timeout >= 5, "got the probe %+v, want %s on http, with 5 s", p, path)
		}
	}
}

// TestKubernetesIsClosedAsItStands: the secrets of the file are empty, and none of those
// that keep others out can stay so.
func TestKubernetesIsClosedAsItStands(t *testing.T) {
	t.Parallel()
	all := documents[object](t, "kubernetes.yaml")
	secret := one(t, all, "Secret", "bobbin")
	for name, value := range secret.StringData {
		compare.Equal(t, "the secret "+name, "", value)
	}
	env := environment(t, one(t, all, "StatefulSet", "bobbin").Spec.Template.Spec.Containers[0], "bobbin-0", secret)
	for _, name := range []string{"BOBBIN_DATABASE_URL", "BOBBIN_NATS_SECRET"} {
		without := maps.Clone(env)
		without[name] = ""
		if _, err := load(t, without, nil); err == nil {
			t.Errorf("it starts without %s", name)
		}
	}
}

// TestKubernetesKnowsToolsAndSlack: agents and tools are mounted where they are read, and what the comment
// adds allows tools and connects Slack.
func TestKubernetesKnowsToolsAndSlack(t *testing.T) {
	t.Parallel()
	objects := decode[object](t, "kubernetes.yaml", strings.ReplaceAll(read(t, "kubernetes.yaml"), "# - {name: BOBBIN_", "- {name: BOBBIN_"))
	c, secret := one(t, objects, "StatefulSet", "bobbin").Spec.Template.Spec.Containers[0], one(t, objects, "Secret", "bobbin")
	secret.StringData["slack-bot-token"], secret.StringData["slack-signing-secret"] = "xoxb-1", strongText
	cfg := loaded(t, "with tools and Slack", environment(t, c, "bobbin-0", secret), nil)
	if len(cfg.Tools.Allow) == 0 || cfg.Slack.BotToken.Reveal() == "" || cfg.Slack.SigningSecret.Reveal() == "" {
		t.Errorf("got the tools %v and Slack's %+v", cfg.Tools.Allow, cfg.Slack)
	}
	for _, folder := range []string{cfg.AgentsDir, "/tools"} {
		compare.Contains(t, "mounts", " "+folder+"}", fmt.Sprint(c.Mounts))
	}
}

// TestKubernetesNetwork: only replicas reach the port of the replicas, and the settings
// that encrypt what they say stand in the file.
func TestKubernetesNetwork(t *testing.T) {
	t.Parallel()
	pods := map[string]string{"app.kubernetes.io/name": "bobbin"}
	spec := one(t, documents[object](t, "kubernetes.yaml"), "NetworkPolicy", "bobbin").Spec
	if !maps.Equal(spec.Pods.Labels, pods) || !slices.Equal(spec.PolicyTypes, []string{"Ingress"}) || len(spec.Ingress) != 2 {
		t.Fatalf("got %+v, want what comes in to the pods of Bobbin", spec)
	}
	for _, rule := range spec.Ingress {
		open := len(rule.From) == 0
		if len(rule.Ports) != 1 || open != (rule.Ports[0].Port == "http") || !open && (len(rule.From) != 1 || !maps.Equal(rule.From[0].Pods.Labels, pods)) {
			t.Errorf("got the rule %+v, want http open to all and nats to replicas", rule)
		}
	}
	encrypted := strings.NewReplacer("# - {name: BOBBIN_NATS", "- {name: BOBBIN_NATS", "# - {name: nats", "- {name: nats").Replace(read(t, "kubernetes.yaml"))
	objects := decode[object](t, "kubernetes.yaml", encrypted)
	c := one(t, objects, "StatefulSet", "bobbin").Spec.Template.Spec.Containers[0]
	cfg := loaded(t, "with TLS", environment(t, c, "bobbin-0", one(t, objects, "Secret", "bobbin")), nil)
	mount := c.Mounts[len(c.Mounts)-1].Path
	if cfg.NATS.InTheClear() || !strings.HasPrefix(cfg.NATS.TLSKey, mount+"/") || !strings.Contains(read(t, "kubernetes.yaml"), "NOT ENCRYPTED") {
		t.Errorf("the settings of the comment do not encrypt: %+v, mounted at %s", cfg.NATS, mount)
	}
}

type podSelector struct {
	Labels map[string]string `yaml:"matchLabels"`
}
