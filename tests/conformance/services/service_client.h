// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServiceClient: a program with the services of drivers (user/services), driven as an event loop
// drives them: it waits for the descriptor of its channel, and nothing else.
#pragma once

#include "side.h"
#include "test_host.h"
#include "user/completion_queue.h"
#include "user/hca.h"
#include "user/queue_pair.h"
#include "user/services/cm.h"
#include "user/services/sa.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace ib::conformance {

inline constexpr std::uint64_t kService = 0x1000'ce00'0000'0001;

// The end of a request that was sent with its take().
template <class Out>
struct Answered {
  int times = 0;
  Status status = Status::Pending;
  std::uint32_t handle = 0;
  std::string reason;
  Out out{};

  user::ServiceAnswer<Out> take() {
    return [this](const user::ServiceEnd& end, const Out& output) {
      note(end);
      out = output;
    };
  }
  void note(const user::ServiceEnd& end) {
    ++times;
    status = end.status;
    handle = end.handle;
    reason = end.reason;
  }
};
struct Done : Answered<char> {
  user::ServiceDone take() {
    return [this](const user::ServiceEnd& end) { note(end); };
  }
};

class ServiceClient final : private user::EventSink {
 public:
  // Attaches, opens the first HCA of the node and both services there.
  static std::unique_ptr<ServiceClient> start(const HostSettings& settings, std::string& reason);
  ~ServiceClient() override;  // destroys what is left, in dependency order

  user::Process& process() { return *process_; }
  user::Hca& hca() { return *hca_; }
  user::ServiceChannel& channel() { return *channel_; }
  user::Sa& sa() { return *sa_; }
  user::Cm& cm() { return *cm_; }
  void drop_cm() { cm_.reset(); }
  verbs::Gid gid();  // of port 1

  // Runs the loop until `is_so`; returns false after the time.
  bool comes(const std::function<bool()>& is_so, std::uint32_t milliseconds = kTimeLimitMs);
  // Likewise until the answer is there, and returns its status; Pending: it does not come.
  template <class Out>
  Status end_of(Answered<Out>& answer) {
    (void)comes([&answer] { return answer.times > 0; });
    return answer.status;
  }
  // False once the channel is over.
  bool is_up() const { return is_up_; }

  user::QueuePair* make_qp();  // RC; null: no
  // Whether the next completion is a success; the queue pairs share a queue.
  bool completes();
  Status to_state(user::QueuePair& qp, control::CmHandle connection, QpState state,
                  std::uint32_t psn = 0);
  Result<control::SaPath> path_to(const verbs::Gid& gid);

 private:
  explicit ServiceClient(const HostSettings& settings) : host_(settings) {}
  void on_event(const control::EventOut& /*event*/) override {}

  TestHost host_;
  std::unique_ptr<user::Process> process_;
  std::unique_ptr<user::Hca> hca_;
  std::unique_ptr<user::ProtectionDomain> pd_;
  std::unique_ptr<user::CompletionQueue> cq_;
  std::vector<std::unique_ptr<user::QueuePair>> qps_;
  bool is_up_ = true;
  std::unique_ptr<user::ServiceChannel> channel_;
  std::unique_ptr<user::Sa> sa_;
  std::unique_ptr<user::Cm> cm_;
};

// A REQ over the path, from a queue pair in Init.
control::CmConnectIn connect_in(const control::SaPath& path, std::uint32_t qpn,
                                std::uint64_t service = kService);

// A program (conformance_peer) that joins a group, listens and accepts: one byte goes to `socket`
// when it does so. Ends when the socket is closed.
int run_service_peer(const HostSettings& settings, int socket);
inline constexpr std::uint8_t kPeersGroup = 9;
verbs::Gid group(std::uint8_t number);

}  // namespace ib::conformance
