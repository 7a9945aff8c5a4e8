// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The subnet administrator for programs [IBA1 chapter 15]: paths, registrations of services,
// subscriptions to reports, memberships in multicast groups. The requests of al::Sa (al/sa.h),
// with the same statuses and limits, and a callback for the completion of each.
//
//   sa.open(hca, [&](const ServiceEnd& end) ...), and when that is Ok:
//   sa.query_path(in, [&](const ServiceEnd& end, const control::SaPath& path) ...)
//   sa.subscribe({1, 65}, [&](const ServiceEnd& end) { the subscription is end.handle })
//   sa.wait_event(subscription, [&](const ServiceEnd& end, const control::SaEvent& event) ...)
//
// A membership, a registration and a subscription are handles; wait_event() brings the next event
// of one, destroy() ends one, and so does the end of the Sa or of the process. A request that does
// not end with Ok leaves nothing behind.
#pragma once

#include "user/services/service_file.h"
#include "verbs/services/sa_requests.h"

namespace ib::user {

class Sa : public ServiceFile {
 public:
  explicit Sa(ServiceChannel& channel) : ServiceFile(channel, control::ServiceKind::Sa) {}
  ~Sa() = default;

  Status query_path(const control::SaPathIn& in, ServiceAnswer<control::SaPath> done) {
    return call_for<control::SaPath>(control::SaCode::QueryPath, in, std::move(done));
  }
  // ServiceEnd::handle is the registration.
  Status register_service(const control::SaServiceIn& in, ServiceDone done) {
    return call(control::SaCode::Register, in, std::move(done));
  }
  // ServiceEnd::handle is the subscription. Reports are events.
  Status subscribe(const control::SaSubscribeIn& in, ServiceDone done) {
    return call(control::SaCode::Subscribe, in, std::move(done));
  }
  // SaGroup::handle is the share. The queue pair is attached by the program itself
  // (verbs::control McastIn), with the mlid and mgid of the group.
  Status join(const control::SaJoinIn& in, ServiceAnswer<control::SaGroup> done) {
    return call_for<control::SaGroup>(control::SaCode::Join, in, std::move(done));
  }
  // The next event of an object. Up to 256 are kept until it is called.
  Status wait_event(control::SaHandle object, ServiceAnswer<control::SaEvent> done) {
    return call_for<control::SaEvent>(control::SaCode::WaitEvent, control::SaHandleIn{object},
                                      std::move(done));
  }
  // `done` may be empty. Requests that wait for the object end with Cancelled.
  Status destroy(control::SaHandle object, ServiceDone done = {}) {
    return call(control::SaCode::Destroy, control::SaHandleIn{object}, std::move(done));
  }
};

}  // namespace ib::user
