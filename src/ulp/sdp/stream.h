// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One end of a byte stream over a reliable connection [IBA1 annex A4, SDP]: copied through receive
// buffers (BCopy), or moved by RDMA between buffers of the two programs (ZCopy).
//
// Sans-IO: calls of the program, received messages, completions and the time come in; work requests
// come out of next_post(), news out of take_events(). Nothing here touches a byte of the stream:
// the calls say which bytes of which area go where, and the caller copies. All state is in `Stream`
// (stream_state.h), which may lie in shared memory. Thread rule: the caller holds the stream's lock
// around each call.
//
// **Areas of the caller.** (a) The send ring: settings.send_ring_bytes of registered memory. The
// program's bytes are copied to room(), then write() is called. (b) kMostSendSlots places for
// headers (or inline sends); a post uses the one of index `tag % kMostSendSlots`. (c) Receive
// buffers, known by an index of the caller's choice, from a shared receive queue or the queue
// pair's own: header and payload of a message are in one.
//
// **The caller's loop.** After each input: take_free_buffer() until it has none, each posted or
// given back to the process's pool; next_post() until it returns nothing, each posted in this order
// to the one send queue; take_events(); take_result() if kResult, before front() is read.
// Completions come in the order of the tags; one of a signaled post stands for all before it. A
// post or a receive that fails: on_lost(), after all messages and completions that have come.
//
// **Connecting.** init(), on_posted(n) for the receive buffers, then:
//    active:   make_hello() -> REQ ... REP -> on_hello_ack(): Established, RTU.
//    passive:  REQ -> on_hello(), make_hello_ack() -> REP ... RTU, or the first message ->
//    on_established().
//
// **Writing.** write(n) for bytes in the ring. write_direct() for a registered buffer of the
// program: it stays untouched until its result says how many bytes the peer has got. cancel_write()
// makes the result come early; bytes that it does not count were not sent and will not be. Writes
// of both kinds may follow each other in any order.
//
// **Reading.** front() says what comes next: bytes of a receive buffer, or an advertisement of the
// peer. Copy bytes, then consume(n). For an advertisement call read_direct() with a registered
// buffer (RDMA READ), or request_copies() if the program's buffer is small: the peer then sends the
// bytes. read_direct() may also be called when nothing is there: in Pipelined mode the peer is told
// of the buffer. Its result says how many bytes are in it. 0: others came first, or it was
// cancelled; read those by front().
//
// **Urgent byte.** The last byte of a write with `urgent`. front() never crosses it: it ends before
// it, then is the one byte with `urgent` set. find_urgent() finds it earlier. Skipping it (no
// SO_OOBINLINE) is the caller's: consume(1) without delivering.
//
// **Ending.** shutdown_send() is a half close: DisConn after all that was written. close(): the
// program is gone, but what it has written is still sent; unread bytes, or bytes that come later,
// reset the peer. abort(): resets it at once. kFinished: take the connection down (DREQ);
// credits.posted receive buffers of the stream's share are still posted then. Before take_result()
// is called after kFinished or on_lost(), the queue pair has to be destroyed or in error, as the
// memory of direct writes and reads goes back with the results.
#pragma once

#include "base/result.h"
#include "base/time.h"
#include "ulp/sdp/hello.h"
#include "ulp/sdp/messages.h"
#include "ulp/sdp/stream_state.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ib::sdp {

// A piece of an area of the caller.
struct Piece {
  enum Area : std::uint8_t {
    Nothing,
    SendRing,
    WriteBuffer,  // of the direct write `id`
    ReadBuffer,   // of the direct read `id`
  };
  Area area = Nothing;
  std::uint64_t id = 0;
  std::uint64_t offset = 0;  // from the start of the area
  std::uint32_t length = 0;
};

// The next work request for the send queue.
struct Post {
  enum Kind : std::uint8_t {
    Send,   // header, then payload
    Read,   // RDMA READ from the peer into `payload`
    Write,  // RDMA WRITE of `payload` to the peer
  };
  Kind kind = Send;
  bool signaled = false;  // wants a completion
  std::uint64_t tag = 0;
  HeaderBytes header;
  Piece payload;
  std::uint64_t remote_address = 0;
  std::uint32_t rkey = 0;
};

// The next part of what the program reads.
struct Front {
  enum Kind : std::uint8_t { Nothing, Bytes, Advertisement, End };
  Kind kind = Nothing;
  std::uint32_t buffer = 0;  // Bytes: of this receive buffer
  std::uint32_t offset = 0;  // of the first byte in it
  std::uint32_t length = 0;
  bool urgent = false;  // this is the urgent byte
};

struct UrgentByte {
  std::uint32_t buffer = 0;
  std::uint32_t offset = 0;
};

// InvalidParameter if the settings make no sense; then `stream` is unchanged.
Status init(Stream& stream, const Settings& settings);

// -- Connecting.
// Fills in the fields that the stream decides; addresses and ports are the caller's.
Hello make_hello(Stream& stream, const Hello& addresses);
// InvalidParameter for a peer with fewer receive buffers than a byte of payload needs.
Status on_hello(Stream& stream, const Hello& hello);
HelloAck make_hello_ack(Stream& stream);
Status on_hello_ack(Stream& stream, const HelloAck& ack);
void on_established(Stream& stream);

// -- Receive buffers.
// `count` more receive buffers wait for messages of this stream.
void on_posted(Stream& stream, std::uint32_t count);
// A buffer that is free again. The caller posts it before it calls next_post(); with `is_over` it
// keeps it instead.
std::optional<std::uint32_t> take_free_buffer(Stream& stream);
// The connection has ended: free buffers are not posted again.
bool is_over(const Stream& stream);

// -- Writing.
std::uint32_t writable_bytes(const Stream& stream);
// The next free piece of the send ring, which ends at the end of the area at the latest.
Piece room(const Stream& stream);
// InvalidState after shutdown_send() or the end (EPIPE, ECONNRESET); InsufficientResources without
// room.
Status write(Stream& stream, std::uint32_t bytes, bool urgent = false);
struct DirectBuffer {
  std::uint64_t id = 0;
  std::uint64_t address = 0;  // of which the peer is told, with rkey
  std::uint32_t length = 0;
  std::uint32_t rkey = 0;
};
Status write_direct(Stream& stream, const DirectBuffer& buffer);
void cancel_write(Stream& stream, std::uint64_t id);
// Corked: only full messages are sent. Uncorking, shutdown and urgent bytes send the rest.
void set_cork(Stream& stream, bool corked);

// -- Reading.
Front front(const Stream& stream);
std::uint64_t readable_bytes(const Stream& stream);
void consume(Stream& stream, std::uint32_t bytes);
Status read_direct(Stream& stream, const DirectBuffer& buffer);
void cancel_read(Stream& stream);
void request_copies(Stream& stream);
std::optional<UrgentByte> find_urgent(const Stream& stream);

// -- Ending.
void shutdown_send(Stream& stream);
void close(Stream& stream, bool linger_zero, Instant now);
void abort(Stream& stream);

// -- From the queue pair.
// `message` is what was received, from its first byte; `buffer` is its index. Malformed: the peer
// broke a rule, and the stream is being aborted.
Status on_message(Stream& stream, std::uint32_t buffer, std::span<const std::byte> message,
                  Instant now);
// All posts up to this one have completed.
void on_completion(Stream& stream, std::uint64_t tag);
void on_lost(Stream& stream);

// -- Outputs.
std::optional<Post> next_post(Stream& stream, Instant now);
std::uint32_t take_events(Stream& stream);
std::optional<DirectResult> take_result(Stream& stream);
std::optional<Instant> deadline(const Stream& stream);
void on_time(Stream& stream, Instant now);

// -- Rarely needed.
// The sending half as its source, or the receiving half as its sink (Buffered to Combined only).
// InvalidState where the annex has no such change. The message goes out when no advertisement is
// open and the peer has acknowledged the change before.
Status request_send_mode(Stream& stream, Mode mode);
Status request_combined_receive(Stream& stream);
// Requests receive buffers of the peer of this size; kRemoteResized follows.
Status request_remote_size(Stream& stream, std::uint32_t bytes);
// Answer to kResizeAsked: the size that the posted receive buffers have by now, which lies between
// the one before and the one that the peer wants.
void answer_resize(Stream& stream, std::uint32_t actual_bytes);
// SuspComm: both ends end their advertisements and fall silent; the connection goes on at another
// service ID.
Status suspend(Stream& stream, std::uint64_t service);
// After kSuspended: unsent and unread bytes stay; connecting begins again, with make_hello() or
// on_hello().
Status resume(Stream& stream);

}  // namespace ib::sdp
