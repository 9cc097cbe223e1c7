//! Drives an executor by commands on standard input, a line each, and answers each with a line.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taskpool::{Context, Executor, Group, Handle, JobError, Options, Rejection, Spec, Stats, SubmitError};

/// Time after which an awaited state doesn't come any more.
const PATIENCE: Duration = Duration::from_secs(8);

static ALIVE: AtomicUsize = AtomicUsize::new(0);
static MOST_QUEUED: AtomicUsize = AtomicUsize::new(0);

struct Presence;

impl Drop for Presence {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

thread_local! {
    /// Exists as long as a thread that ran a job.
    static PRESENCE: Presence = {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Presence
    };
}

/// What jobs and the main thread share.
#[derive(Default)]
struct World {
    open_gates: Mutex<Vec<String>>,
    opened: Condvar,
    started: Mutex<Vec<String>>,
    dropped: Mutex<Vec<String>>,
}

impl World {
    fn pass(&self, gate: &str) {
        let mut open = self.open_gates.lock().unwrap();
        while !open.iter().any(|name| name == gate) {
            open = self.opened.wait(open).unwrap();
        }
    }
}

/// Value that a job captures.
struct Captured {
    name: String,
    world: Arc<World>,
    /// What the destructor does besides taking a note.
    effect: Option<Box<dyn FnOnce() + Send>>,
}

impl Drop for Captured {
    fn drop(&mut self) {
        self.world.dropped.lock().unwrap().push(self.name.clone());
        if let Some(effect) = self.effect.take() {
            effect();
        }
    }
}

type Work = Box<dyn FnOnce(&Context) -> String + Send>;

fn reason(reason: Rejection) -> String {
    match reason {
        Rejection::Full => "full",
        Rejection::ShutDown => "shutdown",
        Rejection::GroupCanceled => "group",
    }
    .to_owned()
}

fn outcome(result: Result<String, JobError>) -> String {
    match result {
        Ok(value) => format!("ok {value}"),
        Err(JobError::Canceled) => "canceled".to_owned(),
        Err(JobError::Panicked(message)) => format!("panicked {message}"),
    }
}

fn family(executor: &Executor, depth: usize) -> usize {
    if depth == 0 {
        return 1;
    }
    let child = executor.clone();
    let handle = executor.submit(&Spec::default(), move |_| family(&child, depth - 1));
    1 + handle.unwrap().join().unwrap()
}

/// Makes a job. `words` are its kind and arguments.
fn work(words: &[&str], name: &str, executor: &Executor, world: &Arc<World>, groups: &HashMap<String, Group>) -> Work {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let (name, executor, world) = (name.to_owned(), executor.clone(), world.clone());
    let groups = groups.clone();
    let weak = words[0] == "effect-stats" || words[0] == "value";
    let effect: Option<Box<dyn FnOnce() + Send>> = match words[0].as_str() {
        "effect-panic" => Some(Box::new(|| panic!("effect"))),
        "effect-stats" => {
            let (executor, groups) = (executor.clone(), groups.clone());
            Some(Box::new(move || {
                executor.stats();
                let _ = executor.try_submit(&Spec::default(), |_| ());
                for group in groups.values() {
                    group.is_canceled();
                }
            }))
        }
        _ => None,
    };
    let captured = Captured { name: name.clone(), world: world.clone(), effect };
    let executor = (!weak).then_some(executor);
    Box::new(move |context: &Context| {
        PRESENCE.with(|_| {});
        let captured = captured;
        world.started.lock().unwrap().push(name.clone());
        let executor = executor.as_ref();
        let argument = words.get(1).cloned().unwrap_or_default();
        let result = match words[0].as_str() {
            "value" => argument,
            "gate" => {
                world.pass(&name);
                context.is_canceled().to_string()
            }
            "spin" => {
                while !context.is_canceled() {
                    thread::yield_now();
                }
                "stopped".to_owned()
            }
            "panic" => panic!("{}", argument.as_str()),
            "panic-str" => panic!("fixed text"),
            "panic-other" => std::panic::panic_any(7),
            "family" => family(executor.unwrap(), argument.parse().unwrap()).to_string(),
            // Waits, then submits a child.
            "late" => {
                world.pass(&name);
                let child = executor.unwrap().submit(&Spec::default(), |_: &Context| ());
                child.map_or_else(|error| reason(error.reason), |_| "queued".to_owned())
            }
            // Submits children, and joins them in the order of `join`.
            "parent" => {
                let executor = executor.unwrap();
                let mut children: Vec<(String, Result<Handle<()>, String>)> = Vec::new();
                for child in argument.split(',') {
                    let (child, priority) = child.split_once('=').unwrap();
                    let spec = Spec { priority: priority.parse().unwrap(), group: None };
                    let (world, name) = (world.clone(), child.to_owned());
                    let job = move |_: &Context| world.started.lock().unwrap().push(name);
                    let handle = executor.submit(&spec, job).map_err(|SubmitError { reason: why, .. }| reason(why));
                    children.push((child.to_owned(), handle));
                }
                let mut results = Vec::new();
                let order: Vec<String> = words.get(2).map(|order| order.split(',').map(str::to_owned).collect()).unwrap_or_default();
                for name in order {
                    let index = children.iter().position(|(child, _)| *child == name).unwrap();
                    let (_, handle) = children.remove(index);
                    results.push(match handle {
                        Ok(handle) => format!("{name}:{}", handle.join().is_ok()),
                        Err(reason) => format!("{name}:{reason}"),
                    });
                }
                results.extend(children.into_iter().map(|(child, handle)| match handle {
                    Ok(_) => format!("{child}:queued"),
                    Err(reason) => format!("{child}:{reason}"),
                }));
                results.join(",")
            }
            "drain" => {
                executor.unwrap().drain();
                String::new()
            }
            "shutdown" => {
                executor.unwrap().shutdown_now();
                String::new()
            }
            "group-wait" => {
                groups[&argument].wait();
                String::new()
            }
            "group-cancel" => groups[&argument].cancel().to_string(),
            "effect-stats" | "effect-panic" => String::new(),
            kind => panic!("unknown kind {kind}"),
        };
        drop(captured);
        result
    })
}

struct Driver {
    world: Arc<World>,
    executor: Option<Executor>,
    groups: HashMap<String, Group>,
    handles: Arc<Mutex<HashMap<String, Handle<String>>>>,
    background: HashMap<String, JoinHandle<String>>,
}

impl Driver {
    fn executor(&self) -> &Executor {
        self.executor.as_ref().unwrap()
    }

    fn spec(&self, priority: &str, group: &str) -> Spec {
        Spec { priority: priority.parse().unwrap(), group: (group != "-").then(|| self.groups[group].clone()) }
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() -> String + Send + 'static) -> String {
        self.background.insert(name.to_owned(), thread::spawn(run));
        "started".to_owned()
    }

    fn number(stats: &Stats, key: &str) -> usize {
        match key {
            "queued" => stats.queued,
            "running" => stats.running,
            "blocked" => stats.blocked,
            "finished" => stats.finished,
            "canceled" => stats.canceled,
            "panicked" => stats.panicked,
            _ => panic!("unknown number {key}"),
        }
    }

    fn answer(&mut self, words: &[&str]) -> String {
        match words {
            ["new", workers, capacity, max_overtakes] => {
                self.executor = Some(Executor::new(Options {
                    workers: workers.parse().unwrap(),
                    capacity: capacity.parse().unwrap(),
                    max_overtakes: max_overtakes.parse().unwrap(),
                }));
                "ok".to_owned()
            }
            ["group", name] => {
                let group = self.executor().group();
                self.groups.insert((*name).to_owned(), group);
                "ok".to_owned()
            }
            [how @ ("try" | "submit" | "background"), name, priority, group, kind @ ..] => {
                let job = work(kind, name, self.executor(), &self.world, &self.groups);
                let (executor, spec, handles) = (self.executor().clone(), self.spec(priority, group), self.handles.clone());
                let (is_try, name) = (*how == "try", (*name).to_owned());
                let key = format!("submit-{name}");
                let run = move || {
                    let result = if is_try { executor.try_submit(&spec, job) } else { executor.submit(&spec, job) };
                    match result {
                        Ok(handle) => {
                            handles.lock().unwrap().insert(name, handle);
                            "ok".to_owned()
                        }
                        Err(SubmitError { reason: why, job }) => {
                            drop(job);
                            reason(why)
                        }
                    }
                };
                if *how == "background" { self.spawn(&key, run) } else { run() }
            }
            ["open", name] => {
                self.world.open_gates.lock().unwrap().push((*name).to_owned());
                self.world.opened.notify_all();
                "ok".to_owned()
            }
            ["started"] => self.world.started.lock().unwrap().join(","),
            ["dropped"] => self.world.dropped.lock().unwrap().join(","),
            ["join", name] => {
                let handle = self.handles.lock().unwrap().remove(*name).unwrap();
                outcome(handle.join())
            }
            ["join-background", name] => {
                let handle = self.handles.lock().unwrap().remove(*name).unwrap();
                self.spawn(&format!("join-{name}"), move || outcome(handle.join()))
            }
            ["forget", name] => {
                self.handles.lock().unwrap().remove(*name);
                "ok".to_owned()
            }
            ["cancel", name] => self.handles.lock().unwrap()[*name].cancel().to_string(),
            ["is-finished", name] => self.handles.lock().unwrap()[*name].is_finished().to_string(),
            ["cancel-group", name] => self.groups[*name].cancel().to_string(),
            ["is-group-canceled", name] => self.groups[*name].is_canceled().to_string(),
            ["wait-group", name] => {
                let group = self.groups[*name].clone();
                self.spawn(&format!("group-{name}"), move || {
                    group.wait();
                    "ended".to_owned()
                })
            }
            [how @ ("drain" | "shutdown"), name] => {
                let (executor, is_drain) = (self.executor().clone(), *how == "drain");
                self.spawn(name, move || {
                    if is_drain { executor.drain() } else { executor.shutdown_now() }
                    "ended".to_owned()
                })
            }
            ["drop-executor", name] => {
                self.groups.clear();
                let executor = self.executor.take();
                self.spawn(name, move || {
                    drop(executor);
                    "ended".to_owned()
                })
            }
            // Waits for a background thread.
            ["await", name] => {
                let thread = self.background.remove(*name).unwrap();
                let end = Instant::now() + PATIENCE;
                while !thread.is_finished() {
                    if Instant::now() > end {
                        return "stuck".to_owned();
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                thread.join().unwrap_or_else(|_| "panicked".to_owned())
            }
            ["is-waiting", name] => (!self.background[*name].is_finished()).to_string(),
            // Waits until a number of the statistics is as given.
            ["until", key, number] => {
                let number: usize = number.parse().unwrap();
                let end = Instant::now() + PATIENCE;
                loop {
                    let found = Self::number(&self.executor().stats(), key);
                    if found == number {
                        return "ok".to_owned();
                    }
                    if Instant::now() > end {
                        return format!("stuck at {found}");
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
            ["stats"] => {
                let stats = self.executor().stats();
                ["queued", "running", "blocked", "finished", "canceled", "panicked"]
                    .map(|key| format!("{key}={}", Self::number(&stats, key)))
                    .join(" ")
            }
            ["alive"] => ALIVE.load(Ordering::SeqCst).to_string(),
            ["stress", threads, jobs] => self.stress(threads.parse().unwrap(), jobs.parse().unwrap()),
            _ => panic!("unknown command {words:?}"),
        }
    }

    /// Submits jobs from several threads, cancels some of them, and joins all.
    fn stress(&self, threads: usize, jobs: usize) -> String {
        let (finished, canceled, ran) = (AtomicUsize::new(0), AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    MOST_QUEUED.fetch_max(self.executor().stats().queued, Ordering::SeqCst);
                    thread::yield_now();
                }
            });
            let submitters: Vec<_> = (0..threads)
                .map(|thread| {
                    let (finished, canceled, ran) = (&finished, &canceled, &ran);
                    scope.spawn(move || {
                        let mut handles = Vec::new();
                        for job in 0..jobs {
                            let spec = Spec { priority: (job % 3) as i32, group: None };
                            let (ran, executor) = (ran.clone(), self.executor().clone());
                            let handle = self.executor().submit(&spec, move |_| {
                                ran.fetch_add(1, Ordering::SeqCst);
                                if job % 7 == 0
                                    && let Ok(child) = executor.submit(&Spec::default(), |_| ())
                                {
                                    child.join().unwrap();
                                }
                                assert!(job % 11 != 0, "eleven");
                                thread * job
                            });
                            let handle = handle.unwrap();
                            if job % 5 == 0 {
                                handle.cancel();
                            }
                            handles.push((job, handle));
                        }
                        for (job, handle) in handles {
                            match handle.join() {
                                Ok(value) => {
                                    assert_eq!(value, thread * job);
                                    finished.fetch_add(1, Ordering::SeqCst);
                                }
                                Err(JobError::Canceled) => {
                                    canceled.fetch_add(1, Ordering::SeqCst);
                                }
                                Err(JobError::Panicked(message)) => assert!(job % 11 == 0 && message == "eleven"),
                            }
                        }
                    })
                })
                .collect();
            for submitter in submitters {
                submitter.join().unwrap();
            }
            is_over.store(true, Ordering::SeqCst);
        });
        let total = threads * jobs;
        let stats = self.executor().stats();
        let is_right = ran.load(Ordering::SeqCst) + canceled.load(Ordering::SeqCst) == total
            && stats.canceled == canceled.load(Ordering::SeqCst)
            && stats.finished >= finished.load(Ordering::SeqCst)
            && stats.queued == 0
            && stats.blocked == 0;
        format!("{is_right} {}", MOST_QUEUED.load(Ordering::SeqCst))
    }
}

fn main() {
    std::panic::set_hook(Box::new(|info| {
        if thread::current().name() == Some("main") {
            eprintln!("{info}");
        }
    }));
    let mut driver = Driver {
        world: Arc::new(World::default()),
        executor: None,
        groups: HashMap::new(),
        handles: Arc::default(),
        background: HashMap::new(),
    };
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        println!("{}", driver.answer(&words));
        io::stdout().flush().unwrap();
    }
    // Jobs that still run don't matter.
    std::process::exit(0);
}
