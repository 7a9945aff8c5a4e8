// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SubnetClient: what an interface wants of the subnet administrator, over user::Sa: paths,
// memberships, and reports about ports that come and go.
//
// Each request has one answer, which comes from ServiceChannel::process() or deliver(), never from
// inside the call.
// Thread rule: that of the ServiceChannel.
#pragma once

#include "ipoib/station.h"
#include "ulp/ipoib/interface.h"
#include "user/services/sa.h"

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ib::ipoib::driver {

class SubnetClient {
 public:
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual void on_subnet_open(const user::ServiceEnd& end) = 0;
    virtual void on_path_answer(RequestId id, const Result<PathRecord>& answer) = 0;
    virtual void on_join_answer(RequestId id, const Result<GroupParameters>& answer) = 0;
    virtual void on_memberships_lost() = 0;
    virtual void on_path_changed(const Gid& destination) = 0;
  };

  SubnetClient(const Station& station, Sink& sink)
      : station_(station), sink_(sink), sa_(station.services) {}

  // Answered by Sink::on_subnet_open, unless it fails at once.
  Status open();
  bool is_open() const { return sa_.is_open(); }

  void query_path(RequestId id, const Gid& destination);
  void join(RequestId id, const JoinRequest& request);
  void leave(const Gid& mgid);

  // Answers to requests that could not be sent. has_answers(): some wait.
  bool has_answers() const { return !refused_.empty(); }
  void deliver();

 private:
  struct Refused {
    RequestId id{};
    bool is_join = false;
    Status status = Status::Ok;
  };

  void on_group(RequestId id, const Gid& mgid, const user::ServiceEnd& end,
                const user::control::SaGroup& group);
  void watch_group(const Gid& mgid, user::control::SaHandle share);
  void subscribe(std::uint16_t trap);
  void watch_reports(user::control::SaHandle subscription);

  Station station_;
  Sink& sink_;
  user::Sa sa_;
  std::unordered_map<Gid, RequestId> joins_;  // under way
  std::unordered_map<Gid, user::control::SaHandle> shares_;
  std::vector<Refused> refused_;
};

}  // namespace ib::ipoib::driver
