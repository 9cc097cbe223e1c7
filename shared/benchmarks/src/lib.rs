//! One module per benchmark: prompt, parse, grade, aggregate.
