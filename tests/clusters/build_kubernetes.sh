#!/bin/sh
# Build Kubernetes 1.20.2 from Debian's source package, once, into a folder with all that a node of it needs. Nothing is
# installed on the system: packages are unpacked beside. Debian 12 as root; about 15 minutes of CPU time, 3 GiB of disk.
#     sh tests/clusters/build_kubernetes.sh [FOLDER]
set -eu
folder=${1:-${PRONY_TEST_KUBERNETES:-$HOME/.cache/prony-test/kubernetes}}
[ -f "$folder/complete" ] && { echo "Kubernetes is in $folder"; exit 0; }
for one in apt-get dpkg dpkg-source make openssl ip; do
  command -v $one >/dev/null || { echo "no $one here: apt-get install dpkg-dev make openssl iproute2" >&2; exit 3; }
done
. /etc/os-release
[ "${VERSION_CODENAME:-}" = bookworm ] || { echo "only Debian 12 has this source package" >&2; exit 3; }
mkdir -p "$folder/packages" "$folder/bin" "$folder/cni"
cd "$folder"

# Lists of our own, with the sources of the main archive besides what the system asks for.
archive=$(sed -n -e 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -v security | head -n 1)
archive=${archive:-$(sed -n -e 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list | head -n 1)}
mkdir -p lists
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive bookworm main" > sources.list
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive bookworm main" >> sources.list
asked="-o Dir::Etc::SourceList=$folder/sources.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$folder/lists"
asked="$asked -o APT::Sandbox::User=root"
apt-get $asked update
if [ ! -d tree/usr/lib/go-1.19 ]; then
  (cd packages && apt-get $asked download golang-1.19-go golang-1.19-src rsync libpopt0 kubernetes-client etcd-server \
    containerd runc containernetworking-plugins busybox-static)
  for package in packages/*.deb; do dpkg -x "$package" tree; done
fi
if [ ! -d source ]; then
  apt-get $asked source --download-only kubernetes
  rm -rf source.new
  dpkg-source --no-check -x kubernetes_*.dsc source.new
  mkdir -p source.new/.go/src/k8s.io
  ln -s ../../.. source.new/.go/src/k8s.io/kubernetes
  mv source.new source
fi

libraries=$(dirname "$(ls tree/usr/lib/*/libpopt.so.0)")
(
  cd source/.go/src/k8s.io/kubernetes
  export GOPATH="$folder/source/.go" GOCACHE="$folder/cache" HOME="$folder" CGO_ENABLED=0 GO111MODULE=off
  export PATH="$folder/tree/usr/lib/go-1.19/bin:$folder/tree/usr/bin:$PATH" KUBE_GIT_VERSION=v1.20.2
  export LD_LIBRARY_PATH="$folder/$libraries"
  nice make WHAT="cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubelet"
)
for one in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  cp -L "source/_output/bin/$one" bin/
done
cp tree/usr/bin/kubectl tree/usr/bin/etcd tree/usr/bin/containerd tree/usr/bin/containerd-shim-runc-v2 tree/usr/bin/ctr bin/
cp tree/usr/sbin/runc bin/
cp tree/bin/busybox bin/
cp tree/usr/lib/cni/bridge tree/usr/lib/cni/host-local tree/usr/lib/cni/loopback cni/
rm -rf source cache packages lists tree
touch complete
echo "Kubernetes is in $folder"
