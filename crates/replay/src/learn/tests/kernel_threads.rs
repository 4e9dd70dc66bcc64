//! Recordings of kernel threads.

use expect_test::expect;

use super::check;

#[test]
fn a_kernel_thread_that_tasks_wake_on_its_own_cpu_alone_is_that_of_its_wakers_cpu() {
    // The second of the two was also woken from elsewhere, and a task that is not bound is woken anywhere.
    check(
        "3 100 a-10 wakes ksoftirqd/3-11
         3 150 a-10 out S ksoftirqd/3-11
         3 250 ksoftirqd/3-11 wakes kworker/3:1-12
         3 260 ksoftirqd/3-11 out S kworker/3:1-12
         3 300 kworker/3:1-12 wakes b-13
         3 310 kworker/3:1-12 out S b-13
         0 400 c-14 wakes kworker/3:1-12
         3 410 b-13 out S kworker/3:1-12
         3 450 kworker/3:1-12 out S <idle>-0",
        expect![[r#"
            ksoftirqd/3-11, asleep on 3: of its waker's CPU, wait for 10, run 100us, wake 12, run 10us
            a-10, running on 3: wake 11, run 50us
            kworker/3:1-12, asleep on 3: wait for 11, run 40us, wake 13, run 10us, wait for 14, run 40us
            b-13, asleep on 3: wait for 12, run 100us
            c-14, running on 0: run 300us, wake 12, run 50us
        "#]],
    );
}
