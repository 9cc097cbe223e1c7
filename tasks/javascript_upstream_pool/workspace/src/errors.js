/** Base of all errors that relay raises itself. `name` identifies the kind of error. */
export class RelayError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The pool accepts no more requests, or took a connection back because it is closing. */
export class PoolClosedError extends RelayError {}

/** Too many requests wait for a connection. */
export class QueueFullError extends RelayError {}

/** No connection became free in time. */
export class AcquireTimeoutError extends RelayError {}

/** A connection couldn't be opened. `cause` is the error of the connector. */
export class ConnectError extends RelayError {}

/** A connection couldn't be opened in time. */
export class ConnectTimeoutError extends RelayError {}

/** A request wasn't finished in time. */
export class RequestTimeoutError extends RelayError {}
