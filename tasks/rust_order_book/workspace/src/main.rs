//! Matching engine for one instrument: commands on standard input, events on standard output.

mod book;
mod command;
mod engine;
mod event;
mod order;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use crate::command::Command;
use crate::engine::Engine;
use crate::event::{Event, Reject};
use crate::order::Side;

fn main() -> ExitCode {
    match run() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<ExitCode> {
    let mut engine = Engine::default();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(command) = command::parse(&line) else {
            out.flush()?;
            eprintln!("error: line {} is no command: `{line}`", number + 1);
            return Ok(ExitCode::from(2));
        };
        execute(&mut engine, command, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn execute(engine: &mut Engine, command: Command, out: &mut impl Write) -> io::Result<()> {
    match command {
        Command::New(order) => engine.enter(order),
        Command::Cancel { id } => engine.cancel(id),
        Command::Replace { id, quantity, price } => engine.replace(id, quantity, price),
        Command::Order { id } => match engine.view(id) {
            Some(view) => {
                let open = view.total - view.filled;
                writeln!(out, "order {id} {} {} {} {open}", view.state.name(), view.total, view.filled)?;
            }
            None => writeln!(out, "{}", Event::Rejected { id, reason: Reject::Unknown })?,
        },
        Command::Book => {
            for side in [Side::Buy, Side::Sell] {
                for level in engine.book.views(side) {
                    writeln!(out, "level {} {} {} {}", level.side.name(), level.price, level.visible, level.count)?;
                }
            }
            writeln!(out, "end")?;
        }
    }
    for event in engine.take_events() {
        writeln!(out, "{event}")?;
    }
    Ok(())
}
