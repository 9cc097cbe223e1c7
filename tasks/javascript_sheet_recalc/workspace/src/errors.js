/** A request that is refused. It leaves the sheet as it was. */
export class RequestError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
