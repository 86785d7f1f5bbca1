#!/bin/sh
# Put Apptainer and an image of Debian with Redis into a folder, once. Debian 12 has no Apptainer, and the one of sid needs a
# newer C library: it runs in a root of its own, by bubblewrap. Nothing is installed on the system. Debian 12 as root.
#     sh tests/clusters/build_apptainer.sh [FOLDER]
set -eu
folder=${1:-${PRONY_TEST_APPTAINER:-$HOME/.cache/prony-test/apptainer}}
[ -f "$folder/complete" ] && { echo "Apptainer is in $folder"; exit 0; }
for one in debootstrap apt-get dpkg; do
  command -v $one >/dev/null || { echo "no $one here: apt-get install debootstrap" >&2; exit 3; }
done
archive=$(sed -n -e 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -v security | head -n 1)
archive=${archive:-$(sed -n -e 's/^deb  *\(\[[^]]*\] *\)\{0,1\}\([^ ]*\) .*/\2/p' /etc/apt/sources.list | head -n 1)}
mkdir -p "$folder/bin"
cd "$folder"
rm -rf root image tree
debootstrap --variant=minbase --include=apptainer sid root "$archive"
debootstrap --variant=minbase --include=redis-server bookworm image "$archive"
cp /etc/hosts /etc/resolv.conf root/etc/
apt-get -o APT::Sandbox::User=root download bubblewrap
dpkg -x bubblewrap_*.deb tree
# Where root lacks a capability, Apptainer must not ask for it.
cat > bin/apptainer <<END
#!/bin/sh
verb=\$1
shift
case \$verb in exec | run) set -- --drop-caps CAP_SYS_RESOURCE "\$@" ;; esac
exec "$folder/tree/usr/bin/bwrap" --bind "$folder/root" / --dev-bind /dev /dev --bind /proc /proc --bind /sys /sys \\
  --bind /tmp /tmp --bind "$folder" "$folder" --cap-add ALL --die-with-parent --chdir / /usr/bin/apptainer "\$verb" "\$@"
END
chmod 755 bin/apptainer
mkdir -p "root$folder"
bin/apptainer --version
touch complete
