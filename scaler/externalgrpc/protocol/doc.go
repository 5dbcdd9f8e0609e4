// Package protocol is the protocol of external providers, generated from provider.proto.
//
// It is generated anew by protoc (Debian: protobuf-compiler, libprotobuf-dev) with the plugins of protobuf and grpc
// in the versions that go.mod names:
//
//	GOBIN=/tmp/protoc go install google.golang.org/protobuf/cmd/protoc-gen-go
//	GOBIN=/tmp/protoc go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.0
//	PATH=/tmp/protoc:$PATH go generate ./scaler/externalgrpc/protocol
package protocol

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative provider.proto
