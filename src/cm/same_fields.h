// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages, the requests of consumers, events and the forms that services have for them name the
// same fields alike. They are copied here, each in one place. Fields that change on the way (the
// own queue pair, which is the other one for the peer) are written where one becomes the other.
#pragma once

namespace ib::cm {

// Of a REQ or a REP.
template <class From, class To>
void copy_terms(const From& from, To& to) {
  to.starting_psn = from.starting_psn;
  to.responder_resources = from.responder_resources;
  to.initiator_depth = from.initiator_depth;
  to.rnr_retry_count = from.rnr_retry_count;
  to.srq = from.srq;
  to.flow_control = from.flow_control;
}

// Of a REQ.
template <class From, class To>
void copy_request_terms(const From& from, To& to) {
  to.service_id = from.service_id;
  to.retry_count = from.retry_count;
  copy_terms(from, to);
}

// How long each side may take to answer, and how often a message is sent again.
template <class From, class To>
void copy_response_times(const From& from, To& to) {
  to.remote_cm_response_timeout = from.remote_cm_response_timeout;
  to.local_cm_response_timeout = from.local_cm_response_timeout;
  to.max_cm_retries = from.max_cm_retries;
}

// Of a path, but for its LIDs, rate and lifetime.
template <class From, class To>
void copy_route(const From& from, To& to) {
  to.sgid = from.sgid;
  to.dgid = from.dgid;
  to.pkey = from.pkey;
  to.port = from.port;
  to.sl = from.sl;
  to.flow_label = from.flow_label;
  to.traffic_class = from.traffic_class;
  to.hop_limit = from.hop_limit;
}

}  // namespace ib::cm
