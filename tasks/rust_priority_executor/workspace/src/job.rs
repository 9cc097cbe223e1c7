//! Computations.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    Sum { first: u64, last: u64 },
    Collatz { start: u64 },
    Divide { dividend: u64, divisor: u64 },
}

impl Job {
    /// Parses a line. Returns `None` if it is no job.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words.get(index)?.parse().ok();
        match (words.first().copied()?, words.len()) {
            ("sum", 3) => Some(Self::Sum { first: number(1)?, last: number(2)? }),
            ("collatz", 2) => Some(Self::Collatz { start: number(1)? }),
            ("div", 3) => Some(Self::Divide { dividend: number(1)?, divisor: number(2)? }),
            _ => None,
        }
    }

    /// Computes the result. Panics if there is none.
    pub fn compute(self) -> u64 {
        match self {
            Self::Sum { first, last } => (first..=last).fold(0, |sum: u64, number| sum.checked_add(number).expect("the sum is too large")),
            Self::Collatz { start } => {
                assert!(start > 0, "the start is 0");
                let mut steps = 0;
                let mut number = start;
                while number != 1 {
                    number = if number % 2 == 0 { number / 2 } else { 3 * number + 1 };
                    steps += 1;
                }
                steps
            }
            Self::Divide { dividend, divisor } => dividend.checked_div(divisor).expect("division by zero"),
        }
    }
}
