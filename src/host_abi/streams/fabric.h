// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// This process at the fabric: it attaches when the first stream needs that. A child of fork()
// attaches by itself, and opens the ends that it has inherited at their first use.
//
// All calls block signals, are not cancelled, and wait for softibd at most.
#pragma once

#include "host_abi/streams/table.h"
#include "user/streams/stream_client.h"

namespace ib::host_abi::stream_switch {

// The switch is on for this process (SOFTIB_SOCKETS).
bool is_on();
bool is_in_range(const verbs::control::StreamAddress& address);

// This process is about to lose its right to attach: it does so now.
void attach_in_time();

bool listen_at(const verbs::control::StreamAddress& local);
void unlisten_at(const verbs::control::StreamAddress& local);
// `tcp` does not block.
Result<user::StreamClient::Opened> connect_to(const verbs::control::StreamAddress& remote, int tcp);
Result<user::StreamClient::Opened> accept_from(const verbs::control::StreamAddress& local,
                                               const verbs::control::StreamAddress& remote);
// The end of a stream, in this process. Returns nullptr if it is no more.
streams::End* end_of(Socket& stream);
// As end_of(), but opens nothing.
streams::End* opened_end_of(Socket& stream);
// After Verdict::WantsRing: there is a larger ring, or none is wanted any more.
void grow(streams::End& end);

}  // namespace ib::host_abi::stream_switch
