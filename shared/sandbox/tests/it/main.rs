//! Sandboxes of this machine, in every form that it allows, attacked.
//!
//! Needs bash and python3 in the system's folders. Run by root, the whole suite runs a second time as a user without
//! privileges.

mod api;
mod host;
mod life;

#[tokio::test(flavor = "multi_thread")]
async fn smoke() {
    host::each_form(|at| async move {
        eprintln!("{:?}", at.form());
        let sandbox = at.sandbox().await;
        let t = std::time::Instant::now();
        let out = at.run(&sandbox, "id; pwd; ls -la / /dev /workspace; env; cat /proc/self/status | egrep 'Cap|NoNew|Sec'; ps aux; python3 -c 'print(1)'; df -h; ulimit -a").await;
        eprintln!("{:?} {}\n{}", t.elapsed(), String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        eprintln!("{:?}", sandbox.usage().await);
        let t = std::time::Instant::now();
        sandbox.end().await;
        eprintln!("{:?}", t.elapsed());
    })
    .await;
}
