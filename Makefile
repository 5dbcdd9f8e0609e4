# `make` lists what there is. Needed: Go, make, git; no root. Only images and real machines
# need more, which `make packages` installs.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# What the binaries call themselves, and the tag of the images: the one that the
# manifests ask for.
VERSION ?= $(shell sed -n 's/^ *newTag: *//p' manifests/kustomization.yaml | head -1)
# What they are made of, to the commit.
REVISION ?= $(shell git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null || echo unknown)
# The date that is written into images, so that they are the same tomorrow.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

GO ?= go
TELEMETRY := windlass.dev/windlass/pkg/telemetry
LDFLAGS := -s -w -X $(TELEMETRY).version=$(VERSION) -X $(TELEMETRY).revision=$(REVISION)
# The revision is told by LDFLAGS: what the go command would write of itself depends
# on its settings.
# The linker drops what debuggers need: that the compiler makes it first would cost a sixth of its time.
# A seventh of the rest is the client of EC2, with no loop to be fast in: half of that is inlining.
GCFLAGS := -gcflags=all=-dwarf=false '-gcflags=github.com/aws/aws-sdk-go-v2/service/ec2=-dwarf=false -l'
# Without the tag grpc links pages of traces, and with their templates every method of every type: the
# scaler would be twice as large.
FLAGS := -tags=grpcnotrace -trimpath -buildvcs=false $(GCFLAGS)
BUILD := CGO_ENABLED=0 $(GO) build $(FLAGS) -ldflags '$(LDFLAGS)'
# What is run from its source, tested or checked is compiled as what is built is: once, wherever the
# checkout lies.
GORUN := CGO_ENABLED=0 $(GO) run $(FLAGS) -ldflags '-s -w'
check test e2e machines: export CGO_ENABLED := 0
check test e2e machines: export GOFLAGS := $(GOFLAGS) $(FLAGS)
# The control plane of the tests is a module of its own, so that what it is
# made of never mixes with what Windlass is made of.
CONTROLPLANE := e2e/controlplane
# So is Helm, by which tests hold the chart.
HELM := e2e/helm
# Newer ones need a module that the public proxy does not serve.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
# Newer ones need a module that the public proxy does not serve. It takes four minutes of a
# processor to build, once.
GORELEASER := github.com/goreleaser/goreleaser/v2@v2.16.0

# What `make fuzz` compares: so many pairs of pod and node, from that random world
# on. The seed is a new one each second; the run prints it.
PAIRS ?= 10000000
SEED ?= $(shell date +%s)

PROGRAMS := agent scaler notifier
# What the images are for, and where they are written.
ARCHITECTURES := amd64 arm64
IMAGES := out/images
# Where images get their programs from. Who builds images beside others has one of his own,
# below this folder.
BINARIES := bin/linux
# What the tests run in pods: the folders of e2e/images.
E2E_PROGRAMS := pause echo client

.PHONY: help
help: ## list the targets
	@echo 'make <target>, where target is one of'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: build
build: $(PROGRAMS:%=build-%) plugin ## build bin/windlass-agent, bin/windlass-scaler, bin/windlass-notifier and bin/kubectl-windlass

.PHONY: $(PROGRAMS:%=build-%)
$(PROGRAMS:%=build-%): build-%:
	$(BUILD) -o bin/windlass-$* ./$*

.PHONY: plugin
plugin: ## build bin/kubectl-windlass, the plugin of kubectl
	$(BUILD) -o bin/kubectl-windlass ./cli

.PHONY: controlplane
controlplane: ## build etcd, the Kubernetes programs and kwok for the tests; a second time is instant
	$(GORUN:run=run -C $(CONTROLPLANE)) . build

.PHONY: test
test: controlplane ## run every test, those against a real control plane included (ARGS='-run X -v')
	$(GO) test -C $(CONTROLPLANE) ./...
	$(GO) test -C $(HELM) -count 1 ./... # what it reads of other modules, the go command does not see change
	$(GO) test -vet=off -timeout 60m $(ARGS) ./... # vet is make check's

.PHONY: e2e
e2e: controlplane ## run only the tests against a real control plane (ARGS='-run X -v'), then the scripts on real machines
	@$(GO) run ./e2e/machine/require || true # said now, and again when it matters
	$(GO) test -timeout 60m -count 1 $(ARGS) ./e2e/...
	@$(MAKE) --no-print-directory machines ARGS=

.PHONY: machines
machines: controlplane ## play the scripts of real machines: root on Linux (RUN=traffic for one, ARGS=-v)
	@$(GO) run ./e2e/machine/require || { echo 'make packages installs the packages among them (Debian, as root)' >&2; exit 1; }
	@test -z '$(RUN)' || test -f e2e/testdata/machines/$(RUN).txtar || { echo 'make machines: RUN=$(RUN) is none of e2e/testdata/machines' >&2; exit 1; }
	$(GO) test -timeout 60m -count 1 -run '^TestMachines$$$(if $(RUN),/^$(RUN)$$)' $(ARGS) ./e2e -e2e.machines

# What real machines need, which package machine reads, too, and what the fake AWS is judged by.
PACKAGES = $(shell grep -hv '^\#' e2e/machine/packages.txt e2e/fakeaws/packages.txt)

.PHONY: packages
packages: ## install the Debian packages that images, real machines and tests of the fake AWS need, as root, unless all is there
	@test -d /usr/lib/python3/dist-packages/botocore && $(GO) run ./e2e/machine/require 2>/dev/null || { apt-get update --quiet && \
		DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends --no-remove $(PACKAGES); }

.PHONY: demo
demo: ## play a day of a cluster in a minute (KEEP=1 leaves it running)
	$(GORUN) ./e2e/demo $(if $(KEEP),--keep)

.PHONY: world
world: ## start the same world without Windlass until interrupted (NODES=3 GROUPS=2)
	$(GORUN) ./e2e/demo --world $(if $(NODES),--nodes=$(NODES)) $(if $(GROUPS),--groups=$(GROUPS))

.PHONY: bench
bench: controlplane ## run every benchmark and print one table (BENCH=Name, ARGS='-count 3', or ARGS='-read FILE' of a kept output)
	$(GO) run ./e2e/bench/table -bench '$(or $(BENCH),.)' $(ARGS)

.PHONY: soak
soak: controlplane ## play a random life of a cluster against the laws (DURATION=30m SEED=1 NODES=1000, ARGS='-dir out/soak' keeps the logs)
	$(GO) run ./e2e/soak -duration $(or $(DURATION),10m) -seed $(SEED) $(if $(NODES),-nodes=$(NODES)) $(ARGS)

.PHONY: fuzz
fuzz: ## hold package fit against kube-scheduler's own filters (PAIRS=10000000 SEED=1)
	$(GO) test ./scaler/fit -count 1 -timeout 24h -run '^TestAgainstScheduler$$' -v -args -pairs $(PAIRS) -seed $(SEED)

.PHONY: laws
laws: ## hold packages plan and drain against their laws in random worlds that are new (CHECKS=5000 SEED=1)
	$(GO) test ./agent/drain -count 1 -timeout 24h -run Random -args -rapid.checks=$(or $(CHECKS),2000) -rapid.seed=$(SEED)
	$(GO) test ./scaler/plan -count 1 -timeout 24h -run 'Random|Law|Swaps|Retirements|HeadRoom' -args -rapid.checks=$(or $(CHECKS),2000) -rapid.seed=$(SEED)

.PHONY: mutants
mutants: ## edit the code in random places and count which edits the tests notice: a report (COUNT=30 SEED=1 PACKAGES='agent/imds', ARGS='-goal 90' or '-at FILE:LINE')
	$(GO) run ./e2e/mutants -seed $(SEED) -count $(or $(COUNT),30) $(ARGS) $(PACKAGES)

.PHONY: images
images: binaries ## write the images for both architectures to out/images, with SBOM and provenance, by buildah or docker (VERSION=v0.2.0 IMAGES=dir)
	@for program in $(PROGRAMS); do \
		./build-image.sh $(IMAGES)/windlass-$$program.tar windlass-$$program:$(VERSION) '$(ARCHITECTURES)' \
			--file Dockerfile.$$program --build-arg BINARIES=$(BINARIES) --build-arg VERSION=$(VERSION) --build-arg REVISION=$(REVISION) . || exit 1; \
	done
	@$(GO) run ./release -images $(IMAGES) -binaries $(BINARIES) -version $(VERSION) -revision $(REVISION) -date $(SOURCE_DATE_EPOCH) \
		-programs '$(PROGRAMS:%=windlass-%)' -architectures '$(ARCHITECTURES)' -flags "$(BUILD)"

.PHONY: binaries
binaries: ## build what the Dockerfiles copy, into $(BINARIES)
	@for arch in $(ARCHITECTURES); do for program in $(PROGRAMS); do \
		GOOS=linux GOARCH=$$arch $(BUILD) -o $(BINARIES)/$$arch/windlass-$$program ./$$program || exit 1; \
	done; done

.PHONY: e2e-images
e2e-images: ## write the images of what the tests run in pods to out/images
	@arch=$$($(GO) env GOARCH); for program in $(E2E_PROGRAMS); do \
		GOOS=linux $(BUILD) -o $(BINARIES)/$$arch/e2e-$$program ./e2e/images/$$program && \
		./build-image.sh $(IMAGES)/e2e-$$program.tar e2e-$$program:v1 $$arch \
			--file e2e/images/Dockerfile --build-arg BINARIES=$(BINARIES) --build-arg PROGRAM=$$program . || exit 1; \
	done

.PHONY: chart
chart: ## write the Helm chart as an archive to out/chart
	@rm -rf out/chart # a release takes what is there
	$(GO) -C $(HELM) tool helm package $(CURDIR)/charts/windlass --destination $(CURDIR)/out/chart --version $(VERSION:v%=%) --app-version $(VERSION)

.PHONY: release-check
release-check: ## check .goreleaser.yaml, by goreleaser itself
	$(GO) run $(GORELEASER) check

.PHONY: release-tag
release-tag: ## fail unless the manifests ask for the images of VERSION, and the plugin's is of it
	@others=$$(grep -rn 'newTag:' manifests | grep -v 'newTag: $(VERSION)$$'; grep -Hn '^  version:' cli/windlass.yaml | grep -v 'version: $(VERSION)$$'); if [ -n "$$others" ]; then \
		echo 'a release of $(VERSION) has other versions than these; set them, and run make update:'; echo "$$others"; exit 1; fi

.PHONY: release
release: ## make a release of the tag that is checked out: .github/workflows/release.yaml calls it
	$(GO) run $(GORELEASER) release --clean

.PHONY: krew
krew: ## write krew's manifest of the plugin to out/release, after make release (DOWNLOADS=https://..., where releases are)
	$(GO) run ./release -krew cli/windlass.yaml -checksums out/release/checksums.txt -version $(VERSION) -downloads '$(DOWNLOADS)' -out out/release/windlass.yaml

.PHONY: chart-push
chart-push: chart ## push out/chart to an OCI registry that docker or helm is logged in to (REGISTRY)
	$(GO) -C $(HELM) tool helm push $(CURDIR)/out/chart/windlass-$(VERSION:v%=%).tgz "oci://$$REGISTRY/charts"

.PHONY: check
check: ## gofmt, go vet and staticcheck over all modules, and whether the chart is what the manifests are
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo 'gofmt would change:' >&2; echo "$$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -C $(CONTROLPLANE) ./...
	$(GO) vet -C $(HELM) ./...
	$(GO) tool staticcheck ./...
	@staticcheck=$$($(GO) tool -n staticcheck) && for module in $(CONTROLPLANE) $(HELM); do (cd $$module && $$staticcheck ./...) || exit 1; done
	$(GO) run ./charts/generate -check

.PHONY: vuln
vuln: ## look for known vulnerabilities (asks vuln.go.dev)
	@$(GO) run $(GOVULNCHECK) ./... || { \
		echo 'make vuln: if it says "fetching vulnerabilities" above, nothing was looked at: vuln.go.dev (or GOVULNDB) cannot be reached from here' >&2; \
		exit 1; }

.PHONY: update
update: ## rewrite the golden files of the scenario tests, what is generated in docs, and the chart; look at the difference before you commit it
	$(GO) test $$($(GO) list -f '{{$$p := .ImportPath}}{{range .TestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}{{range .XTestImports}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./... \
		| sed -nE 's#^(.*) (github.com/cockroachdb/datadriven|windlass.dev/windlass/docs/section)$$#\1#p' | sort -u) -args -rewrite
	$(GO) run ./charts/generate # last: it reads the page of flags

.PHONY: clean
clean: ## remove what was built here; the test control plane stays in the user's cache
	rm -rf bin out
