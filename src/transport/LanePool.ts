import type { Observable } from 'rxjs';
import type { TransportRequest, TransportResponse } from './Transport.js';

/** The connections of one lane. */
export interface LanePool {
  /** Sends on subscribe; unsubscribing aborts. */
  send(request: TransportRequest): Observable<TransportResponse>;
  /** Takes nothing new and waits for what is in flight. */
  close(): Promise<void>;
  /** Fails what is in flight. Does not wait for the server. */
  destroy(): Promise<void>;
}
