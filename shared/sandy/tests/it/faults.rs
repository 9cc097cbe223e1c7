//! A host that is down, slow, full, or answers garbage: every call ends in a named error, and is repeated only if that
//! is harmless.

use std::time::Duration;

use bench_sandy::testing::{Call, Endpoint, Fault, Options, SandyServer};
use bench_sandy::{ExecRequest, NewSandbox, Sandy, SandyError, SandyErrorKind, Timing};

use crate::support::timing;

fn status(status: u16, body: &str) -> Fault {
    Fault::Status(status, body.to_owned(), Vec::new())
}

/// A time limit that is short for a test, and long enough for a call to reach its server on a busy machine.
const SHORT: Duration = Duration::from_secs(4);

/// Returns short time limits if the fault is a missing answer; otherwise slow answers must not time out.
fn timing_for(fault: &Fault) -> Timing {
    match fault {
        Fault::Hang(_) => Timing { create: SHORT, exec_min: SHORT, exec_margin: Duration::ZERO, ..timing() },
        _ => timing(),
    }
}

/// Starts a server that answers every call with this fault, and a client of it.
async fn faulty(fault: Fault) -> (SandyServer, Sandy) {
    let timing = timing_for(&fault);
    let server = SandyServer::with_rule(move |_: &Call| fault.clone()).await.unwrap();
    let sandy = server.sandy(timing).unwrap();
    (server, sandy)
}

fn command() -> ExecRequest {
    ExecRequest::new("true").within(Duration::from_millis(100))
}

#[tokio::test]
async fn a_creation_is_not_repeated_once_the_host_may_have_created_the_sandbox() {
    for (fault, error) in [
        (Fault::Garbage, SandyError::Shape("it is not JSON".to_owned())),
        (Fault::NoExitCode, SandyError::NoSandboxId),
        (Fault::Hang(Duration::from_secs(600)), SandyError::Timeout { seconds: SHORT.as_secs() }),
        (status(200, r#"{"sandboxId":""}"#), SandyError::NoSandboxId),
        (status(200, r#"{"sandboxId":null}"#), SandyError::NoSandboxId),
        (status(200, r#"{"sandboxId":7}"#), SandyError::Shape("sandboxId is not a string".to_owned())),
        (status(200, r#"{"sandboxId":"../x"}"#), SandyError::Shape("sandboxId is not a valid id".to_owned())),
        (status(200, "[]"), SandyError::NoSandboxId),
        (status(302, ""), SandyError::Status(302)),
        (status(403, "no"), SandyError::Status(403)),
        (
            status(500, r#"{"detail":"out of\nspace"}"#),
            SandyError::Rejected { status: 500, excerpt: "out of space".to_owned() },
        ),
        (status(404, ""), SandyError::Rejected { status: 404, excerpt: "no details".to_owned() }),
        (status(408, ""), SandyError::Full { status: 408, retry_after: None }),
        (status(429, ""), SandyError::Full { status: 429, retry_after: None }),
        (
            Fault::Status(503, "full".to_owned(), vec![("retry-after", "7".to_owned())]),
            SandyError::Full { status: 503, retry_after: Some(Duration::from_secs(7)) },
        ),
    ] {
        let (server, sandy) = faulty(fault.clone()).await;
        let got = sandy.create(&NewSandbox::default()).await;
        assert_eq!((got, server.calls(Endpoint::Create)), (Err(error), 1), "{fault:?}");
    }
    for fault in [Fault::Drop, Fault::DropAfter] {
        let (server, sandy) = faulty(fault).await;
        let error = sandy.create(&NewSandbox::default()).await.unwrap_err();
        assert!(matches!(error, SandyError::Unreachable(_)), "{error}");
        assert_eq!((error.kind(), server.calls(Endpoint::Create)), (SandyErrorKind::Transient, 1));
    }
}

#[tokio::test]
async fn a_full_host_is_busy_until_a_sandbox_ends() {
    let server = SandyServer::start(Options { capacity: Some(1), ..Options::default() }).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    let first = sandy.create(&NewSandbox::default()).await.unwrap();
    let error = sandy.create(&NewSandbox::default()).await.unwrap_err();
    assert_eq!((error.kind(), error.retry_after()), (SandyErrorKind::Busy, Some(Duration::from_secs(1))));
    sandy.terminate(&first).await.unwrap();
    sandy.create(&NewSandbox::default()).await.unwrap();
    assert_eq!(server.created_count(), 2);
}

#[tokio::test]
async fn only_repeatable_commands_are_sent_again() {
    for (fault, kind) in [
        (Fault::Garbage, SandyErrorKind::Transient),
        (Fault::Drop, SandyErrorKind::Transient),
        (Fault::DropAfter, SandyErrorKind::Transient),
        (Fault::NoExitCode, SandyErrorKind::Transient),
        (Fault::NotReady, SandyErrorKind::Transient),
        (Fault::Hang(Duration::from_secs(600)), SandyErrorKind::Transient),
        (status(200, r#"{"stdout":"","stderr":"","exitCode":"0"}"#), SandyErrorKind::Transient),
        (status(200, r#"{"stdout":"","stderr":"","exitCode":99999999999}"#), SandyErrorKind::Transient),
        (status(200, r#"{"stdout":[],"stderr":"","exitCode":0}"#), SandyErrorKind::Transient),
        (status(502, ""), SandyErrorKind::Transient),
        (status(503, ""), SandyErrorKind::Busy),
        (status(429, ""), SandyErrorKind::Busy),
    ] {
        let timing = timing_for(&fault);
        // Creation must succeed.
        let rule =
            move |call: &Call| if call.endpoint == Endpoint::Exec { fault.clone() } else { Fault::None };
        let server = SandyServer::with_rule(rule).await.unwrap();
        let sandy = server.sandy(Timing { create: Duration::from_secs(90), ..timing }).unwrap();
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        let error = sandy.exec(&id, &command()).await.unwrap_err();
        assert_eq!((error.kind(), server.calls(Endpoint::Exec)), (kind, 1), "{error}");
        let error = sandy.exec(&id, &command().repeatable()).await.unwrap_err();
        assert_eq!((error.kind(), server.calls(Endpoint::Exec)), (kind, 4), "{error}");
    }
    // Permanent errors aren't retried.
    for (fault, error) in [
        (status(401, ""), SandyError::Status(401)),
        (status(422, "x"), SandyError::Rejected { status: 422, excerpt: "x".to_owned() }),
        (status(404, ""), SandyError::Gone),
        (status(410, "Sandbox expired"), SandyError::Gone),
        (status(500, r#"{"error":"the sandbox was preempted"}"#), SandyError::Gone),
        (status(503, "Sandbox terminated"), SandyError::Gone),
        (status(200, r#"{"error":"sandbox preempted"}"#), SandyError::Gone),
        (status(200, &" ".repeat((1 << 20) + 1)), SandyError::TooLong),
        (
            Fault::Status(429, String::new(), vec![("retry-after", "3600".to_owned())]),
            SandyError::Full { status: 429, retry_after: Some(Duration::from_secs(3_600)) },
        ),
    ] {
        let (server, sandy) = faulty(fault).await;
        let got = sandy.exec("sb-1", &command().repeatable()).await;
        assert_eq!((got, server.calls(Endpoint::Exec)), (Err(error), 1));
    }
}

#[tokio::test]
async fn a_missing_exit_code_is_not_a_success() {
    for (body, error) in [
        (r#"{"stdout":"done","stderr":""}"#, SandyError::NoExitCode),
        (r#"{"stdout":"done","stderr":"","exitCode":null}"#, SandyError::NoExitCode),
        (r#"{"error":"agent not ready"}"#, SandyError::NotReady),
        (r#"{"stderr":"Agent not ready","exitCode":255}"#, SandyError::NotReady),
    ] {
        let (_server, sandy) = faulty(status(200, body)).await;
        assert_eq!(sandy.exec("sb-1", &command()).await, Err(error), "{body}");
    }
    // These commands were run: one succeeded, the other wrote output.
    for body in [
        r#"{"stderr":"agent not ready","exitCode":0}"#,
        r#"{"stdout":"x","stderr":"agent not ready","exitCode":1}"#,
    ] {
        let (_server, sandy) = faulty(status(200, body)).await;
        assert!(sandy.exec("sb-1", &command()).await.is_ok(), "{body}");
    }
}

#[tokio::test]
async fn a_command_whose_output_is_too_long_is_an_error() {
    let server = SandyServer::start(Options::default()).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    let id = sandy.create(&NewSandbox::default()).await.unwrap();
    let exec = ExecRequest::new("head -c 2000000 /dev/zero | tr '\\0' x");
    assert_eq!(sandy.exec(&id, &exec).await, Err(SandyError::TooLong));
    let more = ExecRequest { answer_bytes_max: 3 << 20, ..exec };
    assert_eq!(sandy.exec(&id, &more).await.unwrap().stdout.len(), 2_000_000);
}

#[tokio::test]
async fn writes_terminations_and_checks_are_retried() {
    for passing in [Fault::Drop, Fault::DropAfter, status(500, ""), status(503, "")] {
        // The first call of each endpoint fails.
        let fault = passing.clone();
        let rule = move |call: &Call| match call.endpoint {
            Endpoint::Create => Fault::None,
            _ if call.before == 0 => fault.clone(),
            _ => Fault::None,
        };
        let server = SandyServer::with_rule(rule).await.unwrap();
        let sandy = server.sandy(timing()).unwrap();
        let id = sandy.create(&NewSandbox::default()).await.unwrap();
        sandy.write_file(&id, "a", "b").await.unwrap();
        assert_eq!(sandy.exists(&id).await, Ok(true), "{passing:?}");
        sandy.terminate(&id).await.unwrap();
        let calls = [Endpoint::Write, Endpoint::Exists, Endpoint::Terminate].map(|of| server.calls(of));
        assert_eq!((calls, server.open()), ([2, 2, 2], Vec::new()), "{passing:?}");
    }
    let (server, sandy) = faulty(status(500, "")).await;
    assert_eq!(sandy.write_file("sb-1", "a", "b").await.unwrap_err().kind(), SandyErrorKind::Transient);
    // A failed check means neither that it exists nor that it doesn't.
    assert_eq!(sandy.exists("sb-1").await.unwrap_err().kind(), SandyErrorKind::Transient);
    assert_eq!(sandy.terminate("sb-1").await.unwrap_err().kind(), SandyErrorKind::Transient);
    let calls = [Endpoint::Write, Endpoint::Exists, Endpoint::Terminate].map(|of| server.calls(of));
    assert_eq!(calls, [3, 2, 2]);
}

#[tokio::test]
async fn a_failed_connection_is_retried_even_for_creations() {
    let server = SandyServer::start(Options::default()).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    server.down();
    let error = sandy.create(&NewSandbox::default()).await.unwrap_err();
    assert_eq!(error.kind(), SandyErrorKind::Transient);
    assert!(error.to_string().starts_with("Sandy cannot be reached"), "{error}");
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.up().await.unwrap();
    };
    let patient = server.sandy(Timing { repeat_wait: Duration::from_secs(2), ..timing() }).unwrap();
    let new = NewSandbox::default();
    let (made, ()) = tokio::join!(patient.create(&new), later);
    assert_eq!((vec![made.unwrap()], server.created_count()), (server.open(), 1));
}

#[tokio::test]
async fn a_sandbox_that_is_lost_in_between_is_gone() {
    let rule = |call: &Call| if call.sandbox_before == 2 { Fault::Lose } else { Fault::None };
    let server = SandyServer::with_rule(rule).await.unwrap();
    let sandy = server.sandy(timing()).unwrap();
    let id = sandy.create(&NewSandbox::default()).await.unwrap();
    for _ in 0..2 {
        sandy.exec(&id, &ExecRequest::new("true")).await.unwrap();
    }
    for _ in 0..2 {
        assert_eq!(sandy.exec(&id, &ExecRequest::new("true")).await, Err(SandyError::Gone));
    }
    assert_eq!((sandy.exists(&id).await, server.open()), (Ok(false), Vec::new()));
}
