#!/bin/sh
# Builds an image and writes it as an OCI archive, with buildah or with docker;
# `make images` calls it. The image must be FROM scratch and RUN nothing: then
# neither a network nor an emulator is needed, and with SOURCE_DATE_EPOCH the same
# input makes the same digest.
#
#	build-image.sh ARCHIVE NAME:TAG "ARCHITECTURES" FLAG-OF-BUILD... CONTEXT
#
# BUILDER=docker or BUILDER=buildah chooses where both are there. Buildah comes
# first because it needs no daemon.
set -eu
archive=$1 image=docker.io/library/$2 architectures=$3
shift 3

buildah_builds() {
	# A store of its own: no other is touched, and nothing is left behind but, as
	# root, an index of blobs in /var/lib/containers/cache. The driver vfs needs no
	# right to mount.
	store=$(mktemp -d)
	trap 'rm -rf "$store"' EXIT
	trap 'exit 1' HUP INT TERM # without it a signal ends the shell and no EXIT is seen
	mkdir "$store/tmp"
	buildah() {
		TMPDIR="$store/tmp" HOME="$store" XDG_DATA_HOME="$store" XDG_CACHE_HOME="$store" \
			command buildah --storage-driver vfs --root "$store/root" --runroot "$store/run" "$@"
	}
	# One after the other: the order in the index is part of the digest. Which
	# buildah it was must not be.
	for architecture in $architectures; do
		buildah build --quiet --identity-label=false --timestamp "$SOURCE_DATE_EPOCH" \
			--platform "linux/$architecture" --manifest "$image" "$@" >/dev/null
	done
	buildah manifest push --quiet --all "$image" "oci-archive:$store/archive:$image" >/dev/null
	mv "$store/archive" "$archive.new"
}

docker_builds() {
	platforms=$(printf ',linux/%s' $architectures)
	docker buildx build --quiet --platform "${platforms#,}" --provenance=false --sbom=false \
		--output "type=oci,dest=$archive.new,name=$image,rewrite-timestamp=true" "$@" >/dev/null || {
		echo "$0: if docker says that its driver has no such exporter or platform: docker buildx create --use" >&2
		exit 1
	}
}

builder=${BUILDER:-}
if [ -z "$builder" ] && command -v buildah >/dev/null 2>&1; then
	builder=buildah
elif [ -z "$builder" ] && docker buildx version >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
	builder=docker
fi
mkdir -p "$(dirname "$archive")"
case $builder in
buildah) buildah_builds "$@" ;;
docker) docker_builds "$@" ;;
*)
	echo "$0: neither buildah nor a docker that answers and has buildx is here; install one, such as the Debian package buildah" >&2
	exit 1
	;;
esac
# Nobody reads half an archive.
mv "$archive.new" "$archive"
echo "$archive: $image for $architectures"
