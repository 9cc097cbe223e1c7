/** A request that is refused. It changes nothing. */
export class RequestError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
