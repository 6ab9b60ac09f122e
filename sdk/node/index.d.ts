/** Cooperative termination; the contract is in sdk/README.md. All times are in milliseconds. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'

type AnyRequest = IncomingMessage | Http2ServerRequest
type AnyResponse = ServerResponse | Http2ServerResponse

/** What is declared of a class of requests. */
export interface ClassSettings {
  /** No request is terminated before it has run for so long (LB). */
  runMin: number
  /** One that runs longer is of use to nobody (UB). */
  runMax: number
  /** How soon the threshold falls as the loss rises: at 1 in a straight line. 4 if not set. */
  alpha?: number
  /** Up to this loss `runMax` is granted. 0.05 if not set. */
  low?: number
  /** From this loss on `runMin` is granted. 0.15 if not set. */
  high?: number
  /** Time over which the loss is counted. 10 000 if not set. */
  interval?: number
  /** When those who are terminated may come again: the interval, if not set. */
  retryAfter?: number
}

/** A class in numbers: counts since the start, and what holds now. */
export interface Stats {
  arrived: number
  /** Refused, terminated by the threshold, or ended by a deadline from `runMin` on: what is in `p`. */
  lost: number
  /** Terminated by the threshold. */
  terminated: number
  /** Ended by a deadline that they brought along, at whatever time. */
  deadline: number
  clientLeft: number
  /** Those who called `cancelTermination`. */
  deferred: number
  /** Begun and not ended. */
  running: number
  /** The share that was lost in the last whole interval. */
  p: number
  /** How long a request may run now. */
  threshold: number
}

export type Reason = 'ran_too_long' | 'client_left' | 'deadline'

/** A setting that makes no sense: it names the field and the values. */
export class SettingError extends Error {}

/** This request is over: whoever works for it stops. */
export class Terminated extends Error {
  readonly className: string
  readonly reason: Reason
  readonly retryAfter: number
  readonly retryAfterSeconds: number
  readonly status: 504
  readonly statusCode: 504
  readonly headers: Record<string, string>
}

/** One request. A controller makes it. */
export class Token {
  private constructor ()
  readonly className: string
  /** When it began, by the controller's clock. */
  readonly start: number
  /** When it is terminated as things are, by the controller's clock; Infinity if it is not. */
  readonly deadline: number
  /** Whether it is over; also once it is overdue and has not been told. Asking changes nothing. */
  readonly isTerminated: boolean
  /** Why it is terminated, once it has been told. */
  readonly reason: Reason | null
  /** Aborts once it is terminated, with the `Terminated` as its reason. Who takes it is told by a timer. */
  readonly signal: AbortSignal
  /** The name that it came with, if it had one that is taken. */
  readonly request: string | null
  left (): number
  /** The fields for a call to another service: whose it is, and what time is left to it. */
  outgoing (): Record<string, string>
  /** Throws `Terminated` if this request is over. */
  checkpoint (): void
  /** The last checkpoint: from here on nothing terminates this request. Before a write, for one. */
  cancelTermination (): void
  /** Terminates it if it is overdue. Whether that was now. */
  look (): boolean
  /** The first byte of its response goes out: no time terminates it any more. */
  settle (): void
  /** Its client has left: `client_left`, or `deadline` in the last tenth of the time that it brought along. */
  leave (): void
  /** Nobody works for it any more. */
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
  /** Honour the field `bywash-deadline` of requests. True if not set. */
  trustDeadline?: boolean
  /** Take the name of a request from its field `bywash-request`. True if not set. A request without gets a random one. */
  trustRequest?: boolean
}

/** What was said to the stop daemon, since the start. */
export interface SentryStats {
  /** Queries that ran under a lease. */
  leased: number
  /** Queries of no request that has a name: nothing can stop them. The middleware names each request of a class. */
  unnamed: number
  /** Queries that ran without, as nobody was there to ask, or did not answer. */
  unreachable: number
  /** What the daemon refused: queries ran without a lease, or requests were not stopped (`ERR forbidden`). */
  refused: number
  /** Queries that did not begin, as their request had been stopped. */
  stopped: number
  /** Connections that were closed, as the daemon said that another has them too. */
  taken: number
  /** Connections that were closed, as a release was not answered. */
  spoiled: number
  /** Requests that the daemon was told to stop. */
  stops: number
}

/** The stop daemon at `path`, else at BYWASH_SENTRY, else at /run/bywash-sentry/sentry.sock. One for each process. */
export class Sentry {
  constructor (path?: string, options?: { clock?: () => number, patience?: number })
  readonly path: string
  stop (request: string, reason: Reason): void
  stats (): SentryStats
  /** Ends the conversation. Who asks later begins another. */
  close (): void
}

/** This connection has been closed, as the stop daemon says that another has it too. Take another one. */
export class Taken extends Error {
  readonly code: 'BYWASH_TAKEN'
}

/** One query of the request that this code works for, on a connection of a driver that `leased` does not know. */
export class Query {
  constructor (sentry: Sentry, database: string, number: () => number | null | undefined, close: () => void)
  /** Whether anything would be said. */
  readonly isLeased: boolean
  run<Result> (work: () => Promise<Result>): Promise<Result>
}

/** What `work` does works for no request: it is not leased, not refused, and not ended. For clean-up. */
export function unleased<Result> (work: () => Result): Result

/** This client or pool of pg, or connection or pool of mysql2, from now on with leased queries. */
export function leased<Of extends object> (of: Of, sentry: Sentry, database: string): Of

export type ClassOf<Request> = string | ((req: Request) => string | null | undefined)

/**
 * A handler for `http.createServer`, or `createServer` of node:http2, whose requests can be terminated. An error of
 * `classOf`, or a class that is not declared, is answered with 500 and a warning of the process.
 */
export function terminable<Req extends AnyRequest, Res extends AnyResponse> (
  controller: Controller,
  classOf: ClassOf<Req>,
  handler: (req: Req & { bywash?: Token }, res: Res) => unknown,
  options?: Options
): (req: Req, res: Res) => unknown

/** The same for `app.use` and `app.get(path, …, handler)` of Express and its like; that error goes to `next`. */
export function middleware<Req extends AnyRequest, Res extends AnyResponse> (
  controller: Controller,
  classOf: ClassOf<Req>,
  options?: Options
): (req: Req, res: Res, next: (error?: unknown) => void) => void

/** An error handler of Express and its like: answers who was terminated as the gateway does. */
export function answerTerminated (
  error: unknown,
  req: AnyRequest,
  res: AnyResponse,
  next: (error?: unknown) => void
): void

/** The token of the request that this code works for, if it has one. */
export function current (): Token | undefined

/** Throws `Terminated` if the request that this code works for is over; nothing if it works for none. */
export function checkpoint (): void

/** The fields for a call to another service, on behalf of the request that this code works for; else none. */
export function outgoing (): Record<string, string>
