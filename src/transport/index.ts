export * from './auth.js';
export * from './baseUrl.js';
export * from './credentials.js';
export * from './retryAfter.js';
export * from './system.js';
export * from './Transport.js';
export * from './undiciTransport.js';
