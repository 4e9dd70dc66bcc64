#!/bin/bash
# initramfs.sh KERNELROOT PROGRAMS OUT [BINARY...]: the guest's files: busybox, our programs, the modules of its disks,
# and further binaries with the libraries they need.
set -euo pipefail
kernel=$1 programs=$2 out=$(realpath -m "$3")
shift 3
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export PATH=$PATH:/usr/sbin:/sbin

mkdir -p "$root"/{bin,lab,lib}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$here/guest/init" "$root/init"
chmod +x "$root/init"
cp "$here/guest/recorder.sh" "$programs"/* "$root/lab/"
for binary; do
    cp -L "$binary" "$root/lab/"
    for library in $(ldd "$binary" | grep -oE '/[^ ]+'); do
        mkdir -p "$root$(dirname "$library")"
        cp -Lu "$library" "$root$library"
    done
done

modules=$(ls -d "$kernel"/lib/modules/* "$kernel"/usr/lib/modules/* 2>/dev/null | head -1 || true)
release=$(basename "$modules")
depmod -b "${modules%/lib/modules/*}" "$release" 2>/dev/null || true
into=$root/lib/modules/$release
mkdir -p "$into"
cp "$modules"/modules.builtin* "$modules"/modules.order "$into/"
wanted="virtio_pci virtio_blk loop"
for module in $wanted; do
    # Modules that are built in are not listed.
    { grep -E "(^|/)$module\.ko" "$modules/modules.dep" 2>/dev/null || true; } | tr -d : | tr ' ' '\n' | while read -r file; do
        [ -n "$file" ] || continue
        mkdir -p "$into/$(dirname "$file")"
        case $file in
            *.xz) xz -dc "$modules/$file" >"$into/${file%.xz}" ;;
            *.zst) zstd -dcq "$modules/$file" >"$into/${file%.zst}" ;;
            *) cp "$modules/$file" "$into/$file" ;;
        esac
    done
done
cd "$root"
depmod -b . "$release" 2>/dev/null || true
echo "$wanted" >modules.list
find . | cpio -o -H newc --quiet | gzip -3 >"$out.new"
mv "$out.new" "$out"
