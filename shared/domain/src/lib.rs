//! What a run is: types, state machines, sampling, statistics. No I/O.
