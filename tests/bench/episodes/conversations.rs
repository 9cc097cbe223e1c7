//! Conversations in the demo domain with scripted models, whose tools run in sandboxes of the server.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use bench_tests::conversation::{calls, own_messages};
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use serde_json::json;

use crate::load::RUN_MAX;
use crate::server::Server;

const NAME: &str = "tau_bench_telecom";
/// Name of the user simulator's model.
const USER: &str = "user";
/// Conversations at once, one about each task of the demo data.
const CONVERSATIONS: usize = 4;
/// Rounds of a short, a middling and a long conversation. A round has four messages: a call of the agent, its result, a text of
/// the agent, and a text of the user.
const ROUNDS: [usize; 3] = [12, 24, 49];
/// Messages and model calls of a round, and of what precedes the first one: the greeting, and a text of the user.
const ROUND: (usize, usize) = (4, 3);
const BEGINNING: (usize, usize) = (2, 1);
/// Maximum cost of a turn, in milliseconds of CPU time.
const TURN_AIM_MS: f64 = 5.0;

/// Measurements of conversations of the same length.
struct Measured {
    /// Messages of a conversation, and model calls.
    messages: f64,
    turns: f64,
    /// CPU time of the server for a conversation, without that of its sandboxes.
    cpu_ms: f64,
    /// Stored bytes of a conversation.
    stored_bytes: f64,
}

/// Measures turns of conversations, and prints the result.
pub(crate) async fn measure(bench: &Path) -> anyhow::Result<()> {
    let short = conversations(bench, ROUNDS[0]).await?;
    let middle = conversations(bench, ROUNDS[1]).await?;
    let long = conversations(bench, ROUNDS[2]).await?;
    let turn_ms = (long.cpu_ms - short.cpu_ms) / (long.turns - short.turns);
    println!(
        "\na turn of a conversation, a model call with its tools, costs {turn_ms:.2} ms of CPU time ({:.2} of the \
         {TURN_AIM_MS} ms aimed at), without the sandboxes that run the tools",
        turn_ms / TURN_AIM_MS,
    );
    for measured in [&short, &middle, &long] {
        let Measured { messages, turns, stored_bytes, .. } = measured;
        println!(
            "a conversation of {messages} messages stores {stored_bytes:.0} bytes, {:.0} for each of its {turns} turns",
            stored_bytes / turns
        );
    }
    let between = |a: &Measured, b: &Measured| (b.stored_bytes - a.stored_bytes) / (b.turns - a.turns);
    let (first, second) = (between(&short, &middle), between(&middle, &long));
    println!(
        "a turn stores {first:.0} bytes up to message {}, and {second:.0} from there to message {}: {:.2} times as many",
        middle.messages,
        long.messages,
        second / first,
    );
    Ok(())
}

/// Orders conversations with this number of rounds at a new server, and waits until all of them are graded.
async fn conversations(bench: &Path, rounds: usize) -> anyhow::Result<Measured> {
    let rule = move |request: &ModelRequest| reply(request, rounds);
    let model = ModelServer::start(Duration::ZERO, Arc::new(rule)).await?;
    let server = Server::start(bench, None, &model.base_url(), CONVERSATIONS).await?;
    let (cpu_ms, stored_bytes) = (server.usage()?.cpu_ms, server.stored_bytes()?);
    let order = json!({
        "selected_benchmarks": [NAME], "demo": true, "samples": 1, "provider": "openai-compatible",
        "model_id": "scripted", "user_model": { "provider": "openai-compatible", "model_id": USER },
    });
    let (run, _) = server.order(&order).await?;
    server.wait(&run, RUN_MAX).await?;
    let (cpu_ms, stored_bytes) = (server.usage()?.cpu_ms - cpu_ms, server.stored_bytes()? - stored_bytes);
    let samples = server.samples(&run, NAME).await?;
    let graded = samples.iter().filter(|sample| sample["outcome"] != "infrastructure-error").count();
    ensure!(
        graded == CONVERSATIONS,
        "{graded} of {CONVERSATIONS} conversations are graded: {:?}",
        samples.first()
    );
    let turns = BEGINNING.1 + ROUND.1 * rounds;
    let asked = model.total();
    ensure!(asked == (CONVERSATIONS * turns) as u64, "the models were asked {asked} times");
    let each = CONVERSATIONS as f64;
    Ok(Measured {
        messages: (BEGINNING.0 + ROUND.0 * rounds) as f64,
        turns: turns as f64,
        cpu_ms: cpu_ms / each,
        stored_bytes: stored_bytes / each,
    })
}

/// Lets the agent look a ride up before each of its texts, and the user end the conversation after its rounds.
fn reply(request: &ModelRequest, rounds: usize) -> Reply {
    let own = own_messages(request);
    if request.body["model"] == USER {
        return Reply::Text(match own < rounds {
            true => format!("I have waited for {own} minutes, and the ride still goes on in my app."),
            false => "Thank you, that was all. ###STOP###".to_owned(),
        });
    }
    // The greeting is one of its messages.
    if own.is_multiple_of(2) {
        return Reply::Text(format!(
            "The ride is still open at minute {own}. Please look at the lock again."
        ));
    }
    calls(None, &[("get_ride", json!({ "ride_id": "T501" }))])
}
