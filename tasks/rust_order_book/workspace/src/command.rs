//! Command syntax.

use crate::order::{SelfTrade, Side};

const LARGEST: u64 = 1_000_000_000_000;

#[derive(Debug, Clone)]
pub struct NewOrder {
    pub id: u64,
    pub owner: String,
    pub side: Side,
    pub quantity: u64,
    /// `None` for a market order.
    pub price: Option<u64>,
    pub is_ioc: bool,
    pub is_fok: bool,
    pub is_post: bool,
    pub peak: Option<u64>,
    pub self_trade: SelfTrade,
}

#[derive(Debug, Clone)]
pub enum Command {
    New(NewOrder),
    Cancel { id: u64 },
    Replace { id: u64, quantity: u64, price: u64 },
    Order { id: u64 },
    Book,
}

/// Parses a line. Returns `None` if it is no command.
pub fn parse(line: &str) -> Option<Command> {
    let mut words = line.split_ascii_whitespace();
    let command = match words.next()? {
        "new" => {
            let mut order = NewOrder {
                id: words.next()?.parse().ok()?,
                owner: words.next()?.to_owned(),
                side: match words.next()? {
                    "buy" => Side::Buy,
                    "sell" => Side::Sell,
                    _ => return None,
                },
                quantity: number(words.next()?)?,
                price: match words.next()? {
                    "market" => None,
                    price => Some(number(price)?),
                },
                is_ioc: false,
                is_fok: false,
                is_post: false,
                peak: None,
                self_trade: SelfTrade::Newest,
            };
            for option in words.by_ref() {
                match option.split_once('=') {
                    None if option == "ioc" => order.is_ioc = true,
                    None if option == "fok" => order.is_fok = true,
                    None if option == "post" => order.is_post = true,
                    Some(("peak", peak)) => order.peak = Some(number(peak)?),
                    Some(("self", mode)) => {
                        order.self_trade = match mode {
                            "newest" => SelfTrade::Newest,
                            "oldest" => SelfTrade::Oldest,
                            "both" => SelfTrade::Both,
                            "decrement" => SelfTrade::Decrement,
                            _ => return None,
                        }
                    }
                    _ => return None,
                }
            }
            Command::New(order)
        }
        "cancel" => Command::Cancel { id: words.next()?.parse().ok()? },
        "replace" => Command::Replace {
            id: words.next()?.parse().ok()?,
            quantity: number(words.next()?)?,
            price: number(words.next()?)?,
        },
        "order" => Command::Order { id: words.next()?.parse().ok()? },
        "book" => Command::Book,
        _ => return None,
    };
    words.next().is_none().then_some(command)
}

fn number(word: &str) -> Option<u64> {
    word.parse().ok().filter(|number| (1..=LARGEST).contains(number))
}
