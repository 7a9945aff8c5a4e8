// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The structures of al/cm_requests.h in the form of the communication manager's engine, and back.
#pragma once

#include "al/cm_requests.h"
#include "cm/engine.h"
#include "fabric/model.h"

namespace ib::services {

cm::Path to_cm(const al::CmPath& path);
al::CmPath from_cm(const cm::Path& path);
al::CmData data_of(std::span<const std::uint8_t> bytes);
cm::ConnectRequest to_cm(const al::CmConnectIn& in);
cm::Reply to_cm(const al::CmAcceptIn& in);
al::CmRequest request_of(const cm::RequestReceived& event);
// `port`: where it came in.
al::CmRequest request_of(const cm::SidrRequested& event, const fabric::Port& port);
al::CmReply reply_of(const cm::ReplyReceived& event);
// The attributes that lead to `state`. `is_reload`: of an established connection, the alternate
// path that was agreed on since. InvalidParameter: no such state; InvalidState: not known yet.
Status attributes_of(const cm::ConnectionInfo& info, const fabric::Hca& hca, verbs::QpState state,
                     bool is_reload, al::CmQueryOut& out);

}  // namespace ib::services
