/** Cooperative termination; the contract is in sdk/README.md. All times are in milliseconds. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

declare module 'http' {
  interface IncomingMessage {
    /** The token of this request, if a middleware of this library has let it in. */
    bywash?: Token
  }
}

declare module 'http2' {
  interface Http2ServerRequest {
    /** The token of this request, if a middleware of this library has let it in. */
    bywash?: Token
  }
}

type AnyRequest = IncomingMessage | Http2ServerRequest
type AnyResponse = ServerResponse | Http2ServerResponse

/** The settings of a class of requests. */
export interface ClassSettings {
  /** No request is terminated before it has run for this long (LB). */
  runMin: number
  /** A request that runs longer is useless to its client (UB). */
  runMax: number
  /** How fast the threshold falls as the loss rises: 1 is a straight line. Default: 4. */
  alpha?: number
  /** Up to this loss, a request may run for `runMax`. Default: 0.05. */
  low?: number
  /** The loss from which on a request may run for `runMin`. Default: 0.15. */
  high?: number
  /** The period over which the loss is counted. Default: 10 000. */
  interval?: number
  /** After how long clients of terminated requests may retry. Default: the interval. */
  retryAfter?: number
}

/** Counts of a class since the start, and its present values. */
export interface Stats {
  arrived: number
  /**
   * Requests that were refused, terminated by the threshold, or ended by a deadline from `runMin`
   * on: the numerator of `p`.
   */
  lost: number
  /** Requests terminated by the threshold. */
  terminated: number
  /** Requests ended by a deadline that they brought along, at any time. */
  deadline: number
  clientLeft: number
  /** Requests that called `cancelTermination`. */
  deferred: number
  /** Requests that have begun and not ended. */
  running: number
  /** The fraction that was lost in the last whole interval. */
  p: number
  /** How long a request may run now. */
  threshold: number
}

export type Reason = 'ran_too_long' | 'client_left' | 'deadline'

/** An invalid setting. It names the field and the values. */
export class SettingError extends Error {}

/** The error of a request that is over: all work for it should stop. */
export class Terminated extends Error {
  readonly className: string
  readonly reason: Reason
  readonly retryAfter: number
  readonly retryAfterSeconds: number
  readonly status: 504
  readonly statusCode: 504
  readonly headers: Record<string, string>
}

/** The handle of one request. A controller makes it. */
export class Token {
  private constructor ()
  readonly className: string
  /** When the request started, in milliseconds by the controller's clock. */
  readonly start: number
  /**
   * When the request will be terminated at the present threshold, by the controller's clock;
   * Infinity if no time terminates it.
   */
  readonly deadline: number
  /**
   * Whether it is over, also if it is overdue and its handler has not been notified yet. Reading
   * this changes nothing.
   */
  readonly isTerminated: boolean
  /** Why it was terminated, once its handler has been notified. */
  readonly reason: Reason | null
  /**
   * Aborts once the request is terminated, with the `Terminated` as its reason. Once it has been
   * read, a timer tells.
   */
  readonly signal: AbortSignal
  /** The request's name, if it came with an accepted one. */
  readonly request: string | null
  left (): number
  /**
   * Returns the header fields for a call to another service: the request's name and trace, and the
   * time that is left.
   */
  outgoing (): Record<string, string>
  /** Throws `Terminated` if this request is over. */
  checkpoint (): void
  /**
   * Ensures that nothing terminates this request from now on. Throws `Terminated` if the request is
   * over already. Call it before a write, for example.
   */
  cancelTermination (): void
  /** Terminates the request if it is overdue. Returns whether this call did so. */
  look (): boolean
  /**
   * Records that the first byte of the response is sent. From then on no time terminates the
   * request.
   */
  settle (): void
  /**
   * Records that the client has left. The reason is `client_left`, or `deadline` in the last tenth
   * of the time that the request brought along.
   */
  leave (): void
  /** Records that all work for the request is over. */
  end (): void
}

/** The classes of this process. */
export class Controller {
  constructor (classes: Record<string, ClassSettings>, options?: { clock?: () => number })
  readonly clock: () => number
  begin (className: string, left?: number, request?: string | null, passedOn?: Record<string, string>): Token
  arrived (className: string): void
  lost (className: string): void
  threshold (className: string): number
  knows (className: string): void
  stats (): Record<string, Stats>
}

export interface Options {
  /** Honour the field `bywash-deadline` of requests. Default: true. */
  trustDeadline?: boolean
  /**
   * Take the name of a request from its field `bywash-request`. Default: true. A request without a
   * name gets a random one.
   */
  trustRequest?: boolean
}

/** Counts of a `StopClient` since the start. */
export interface StopClientStats {
  /** Queries that ran under a lease. */
  leased: number
  /**
   * Queries outside of a named request, which nothing can stop. The middleware names each request
   * of a class.
   */
  unnamed: number
  /** Queries that ran without a lease, because there was no daemon, or it did not answer. */
  unreachable: number
  /**
   * Refusals of the daemon: queries that ran without a lease, or requests that were not stopped
   * (`ERR forbidden`).
   */
  refused: number
  /** Queries that did not begin because their request was over. */
  stopped: number
  /** Connections that were closed because another client of the daemon had leased them too. */
  taken: number
  /** Connections that were closed because a release was not answered. */
  spoiled: number
  /** Requests that the SDK told the daemon to stop. */
  stops: number
}

/**
 * The client of the stop daemon at `path`, else at BYWASH_STOPD, else at
 * /run/bywash-stopd/stopd.sock. There is one for each process.
 */
export class StopClient {
  constructor (path?: string, options?: { clock?: () => number, patience?: number })
  readonly path: string
  stop (request: string, reason: Reason): void
  stats (): StopClientStats
  /** Ends the conversation. Later queries begin another. */
  close (): void
}

/**
 * The error for a connection that another client of the daemon has leased too. It has been closed;
 * take another one.
 */
export class Taken extends Error {
  readonly code: 'BYWASH_TAKEN'
}

/** A query of the current request, on a connection of a driver that `leased` does not support. */
export class Query {
  constructor (stopClient: StopClient, database: string, number: () => number | null | undefined, close: () => void)
  /** Whether the query will be leased, or refused because its request is over. */
  readonly isLeased: boolean
  run<Result> (work: () => Promise<Result>): Promise<Result>
}

/**
 * Runs `work` outside of any request: its statements are not leased, not refused, not cancelled, and
 * not counted as `unnamed`. For clean-up.
 */
export function unleased<Result> (work: () => Result): Result

/**
 * Makes this client or pool of pg, or connection or pool of mysql2, lease its queries from now on.
 * Returns it.
 */
export function leased<Of extends object> (of: Of, stopClient: StopClient, database: string): Of

export type ClassOf<Request> = string | ((req: Request) => string | null | undefined)

/**
 * Returns a handler for `http.createServer`, or for `createServer` of node:http2, whose requests
 * can be terminated. If `classOf` throws, or returns an undeclared class, the answer is 500, and
 * the process gets a warning.
 */
export function terminable<Req extends AnyRequest, Res extends AnyResponse> (
  controller: Controller,
  classOf: ClassOf<Req>,
  handler: (req: Req, res: Res) => unknown,
  options?: Options
): (req: Req, res: Res) => unknown

/**
 * Returns a middleware for `app.use` and `app.get(path, …, handler)` of Express and similar
 * frameworks. Errors of `classOf` go to `next`.
 */
export function middleware<Req extends AnyRequest, Res extends AnyResponse> (
  controller: Controller,
  classOf: ClassOf<Req>,
  options?: Options
): (req: Req, res: Res, next: (error?: any) => void) => void

/**
 * An error handler of Express and similar frameworks that answers terminated requests like the
 * gateway.
 */
export function answerTerminated (
  error: unknown,
  req: AnyRequest,
  res: AnyResponse,
  next: (error?: any) => void
): void

/** Returns the token of the request that this code works for, if there is one. */
export function current (): Token | undefined

/** Throws `Terminated` if the current request is over; does nothing outside of a request. */
export function checkpoint (): void

/**
 * Returns the header fields for a call to another service on behalf of the current request; else no
 * fields.
 */
export function outgoing (): Record<string, string>
