# Every load, each under the recorder.
facts /out/facts
cpus=$(grep -c ^processor /proc/cpuinfo)
# One CPU of each LLC; on a machine of one LLC every CPU may be used, by four threads.
list=$(cat /sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list | sort -un | sed 's/[-,].*//' | tr '\n' ',' | sed 's/,$//')
threads=$(echo "$list" | tr ',' '\n' | wc -l)
[ "$threads" = 1 ] && { list=0-$((cpus - 1)); threads=4; }
half=$((cpus / 2))
hogs=$((cpus + half))
for i in 1 2 3; do rec "stream-perllc-$i" wl_stream "$list" "$threads" 200; done
rec stream-half wl_stream - $half 200
rec pipes wl_pipes 4 5 600
rec sleepers wl_sleepers 2 $((half > 16 ? 16 : half)) 400 20000 500
modprobe loop
dd if=/dev/zero of=/tmp/file bs=1M count=4 2>/dev/null
losetup /dev/loop0 /tmp/file
rec io-loop wl_io /dev/loop0 4 400 5000
rec barrier wl_barrier 0 200 20000 200
rec barrier-nospin wl_barrier 0 150 20000 0
rec fork wl_fork $((2 * cpus)) 30 20000
rec hogs wl_hogs $hogs 1000 0 0 5 -5
EV="$EVENTS sched/sched_stat_runtime" rec hogs-runtime wl_hogs $hogs 400 0 0 5 -5
# Two looks at every run queue while processes of several weights share the CPUs.
wl_hogs $hogs 400 0 0 5 -5 >/dev/null &
usleep 150000
cat $debug/debug >/out/sched-debug-1.txt
usleep 50000
cat $debug/debug >/out/sched-debug-2.txt
wait
# Last, because a disk makes what follows it differ from run to run.
disks
for disk in /sys/block/vd*; do
    if [ "$(cat "$disk/serial")" = labdata ]; then rec io-disk wl_io "/dev/${disk##*/}" 4 400 5000; fi
done
