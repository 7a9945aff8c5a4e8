// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DirectConnector: a connector without a network: each message is a call that the executor makes
// later. For tests of the service, in virtual time; nothing is lost, and nobody times out.
#pragma once

#include "platform/executor.h"
#include "services/rdma_cm/addresses/places.h"
#include "services/rdma_cm/connector/connector.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace ib::services::rdma_cm {

class DirectConnector final : public Connector {
 public:
  DirectConnector(platform::Executor& executor, const fabric::Fabric& fabric)
      : executor_(executor), fabric_(fabric) {}
  ~DirectConnector() override { *alive_ = false; }

  void set_handler(Handler* handler) override { handler_ = handler; }
  void report_ports(const fabric::Hca& hca) {
    later([&hca](Handler& handler) { handler.on_ports_changed(hca); });
  }
  void report_gone(const fabric::Hca& hca) {
    later([&hca](Handler& handler) { handler.on_hca_gone(hca); });
  }
  void prepare(const fabric::Node&) override {}
  Progress progress(Endpoint endpoint) const override {
    const auto at = ends_.find(endpoint);
    const bool waits =
        at != ends_.end() && at->second.is_active && at->second.state == State::Asked;
    if (!waits) return {};
    return {at->second.is_datagram ? "" : "REQ sent", request_of(at->second)};
  }
  Result<Endpoint> connect(const fabric::Port& from, const ConnectRequest& request) override;
  Result<Endpoint> connect(const fabric::Port& from, const DatagramRequest& request) override;
  Status reply(Endpoint endpoint, const ConnectReply& reply) override;
  Status reply(Endpoint endpoint, const DatagramReply& reply) override;
  Status make_ready(Endpoint endpoint) override;
  Status notify_established(Endpoint endpoint) override;
  Status reject(Endpoint endpoint, std::uint16_t reason, const Bytes& private_data) override;
  Status disconnect(Endpoint endpoint) override;
  void drop(Endpoint endpoint) override;

 private:
  static constexpr Duration kTimewait = std::chrono::seconds(1);
  enum class State : std::uint8_t { Asked, Answered, Ready, Disconnecting, Disconnected, Over };
  struct End {
    Endpoint peer = 0;
    State state = State::Asked;
    bool is_active = false;
    bool is_datagram = false;
  };
  static Unanswered request_of(const End& end) {
    return {end.is_datagram ? Unanswered::Kind::SidrReq : Unanswered::Kind::Req, 1};
  }
  // Returns the peer of a path's port, or nullptr if it is not there.
  const fabric::Port* arrive(const fabric::Port& from, Path& path) const;
  void later(std::function<void(Handler&)> work);
  End* find(Endpoint endpoint);
  void wait(Endpoint endpoint);

  platform::Executor& executor_;
  const fabric::Fabric& fabric_;
  Handler* handler_ = nullptr;
  std::unordered_map<Endpoint, End> ends_;
  std::unordered_map<Endpoint, std::unique_ptr<platform::Timer>> timers_;  // time-wait
  Endpoint last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

inline const fabric::Port* DirectConnector::arrive(const fabric::Port& from, Path& path) const {
  const fabric::Port* to = path.is_ethernet ? fabric_.graph().find_port(path.dgid)
                                            : fabric_.graph().find_port(path.dlid);
  if (to == nullptr || !is_usable(fabric_, *to) || !is_usable(fabric_, from)) return nullptr;
  std::swap(path.sgid, path.dgid);
  std::swap(path.slid, path.dlid);
  path.port = static_cast<std::uint8_t>(to->number);
  path.sgid_index = 0;
  for (std::size_t i = 0; i < to->gids.size(); ++i) {
    if (to->gids[i].gid == path.sgid) path.sgid_index = static_cast<std::uint8_t>(i);
  }
  const auto pkey = std::find_if(to->pkeys.begin(), to->pkeys.end(), [&path](std::uint16_t one) {
    return one != 0 && verbs::share_partition(one, path.pkey);
  });
  if (pkey == to->pkeys.end()) return nullptr;
  path.pkey = *pkey;
  path.pkey_index = static_cast<std::uint16_t>(pkey - to->pkeys.begin());
  return to;
}

inline DirectConnector::End* DirectConnector::find(Endpoint endpoint) {
  const auto at = ends_.find(endpoint);
  return at == ends_.end() ? nullptr : &at->second;
}

inline void DirectConnector::later(std::function<void(Handler&)> work) {
  executor_.post([this, alive = alive_, work = std::move(work)] {
    if (*alive && handler_ != nullptr) work(*handler_);
  });
}

inline void DirectConnector::wait(Endpoint endpoint) {
  timers_[endpoint] = executor_.at(executor_.now() + kTimewait, [this, endpoint] {
    const auto timer = timers_.extract(endpoint);
    if (find(endpoint) != nullptr && handler_ != nullptr) handler_->on_timewait_over(endpoint);
  });
}

inline Result<Endpoint> DirectConnector::connect(const fabric::Port& from,
                                                 const ConnectRequest& request) {
  ConnectRequest arriving = request;
  const fabric::Port* to = arrive(from, arriving.path);
  const Endpoint own = ++last_;
  const Endpoint peer = ++last_;
  ends_[own] = {peer, State::Asked, true, false};
  ends_[peer] = {own, State::Asked, false, false};
  later([this, own, peer, to, arriving = std::move(arriving)](Handler& handler) {
    if (to == nullptr) {
      ends_.erase(peer);
      if (const End* end = find(own)) handler.on_unreachable(own, request_of(*end));
    } else if (find(peer) != nullptr) {
      handler.on_request(peer, *to, arriving);
    }
  });
  return own;
}

inline Result<Endpoint> DirectConnector::connect(const fabric::Port& from,
                                                 const DatagramRequest& request) {
  DatagramRequest arriving = request;
  const fabric::Port* to = arrive(from, arriving.path);
  const Endpoint own = ++last_;
  const Endpoint peer = ++last_;
  ends_[own] = {peer, State::Asked, true, true};
  ends_[peer] = {own, State::Asked, false, true};
  later([this, own, peer, to, arriving = std::move(arriving)](Handler& handler) {
    if (to == nullptr) {
      ends_.erase(peer);
      if (const End* end = find(own)) handler.on_unreachable(own, request_of(*end));
    } else if (find(peer) != nullptr) {
      handler.on_datagram_request(peer, *to, arriving);
    }
  });
  return own;
}

inline Status DirectConnector::reply(Endpoint endpoint, const ConnectReply& reply) {
  End* end = find(endpoint);
  if (end == nullptr || end->is_active || end->state != State::Asked) return Status::InvalidState;
  end->state = State::Answered;
  later([this, peer = end->peer, reply](Handler& handler) {
    End* other = find(peer);
    if (other == nullptr || other->state != State::Asked) return;
    other->state = State::Answered;
    handler.on_reply(peer, reply);
  });
  return Status::Ok;
}

inline Status DirectConnector::reply(Endpoint endpoint, const DatagramReply& reply) {
  End* end = find(endpoint);
  if (end == nullptr || end->is_active || !end->is_datagram || end->state != State::Asked) {
    return Status::InvalidState;
  }
  end->state = State::Over;
  later([this, peer = end->peer, reply](Handler& handler) {
    End* other = find(peer);
    if (other == nullptr || other->state != State::Asked) return;
    other->state = State::Over;
    handler.on_datagram_reply(peer, reply);
  });
  return Status::Ok;
}

inline Status DirectConnector::make_ready(Endpoint endpoint) {
  End* end = find(endpoint);
  if (end == nullptr || !end->is_active || end->state != State::Answered) {
    return Status::InvalidState;
  }
  end->state = State::Ready;
  later([this, peer = end->peer](Handler& handler) {
    End* other = find(peer);
    if (other == nullptr || other->state != State::Answered) return;
    other->state = State::Ready;
    handler.on_ready(peer);
  });
  return Status::Ok;
}

inline Status DirectConnector::notify_established(Endpoint endpoint) {
  End* end = find(endpoint);
  if (end != nullptr && end->state == State::Ready) return Status::AlreadyExists;
  if (end == nullptr || end->is_active || end->state != State::Answered) {
    return Status::InvalidState;
  }
  end->state = State::Ready;
  later([this, endpoint](Handler& handler) {
    if (find(endpoint) != nullptr) handler.on_ready(endpoint);
  });
  return Status::Ok;
}

inline Status DirectConnector::reject(Endpoint endpoint, std::uint16_t reason,
                                      const Bytes& private_data) {
  End* end = find(endpoint);
  if (end == nullptr || (end->state != State::Asked && end->state != State::Answered)) {
    return Status::InvalidState;
  }
  end->state = State::Over;
  later([this, peer = end->peer, reason, private_data](Handler& handler) {
    End* other = find(peer);
    if (other == nullptr || other->state == State::Over) return;
    other->state = State::Over;
    handler.on_rejected(peer, reason, private_data);
  });
  return Status::Ok;
}

// Nobody answers a DREQ later than at once: the end of time-wait follows it.
inline Status DirectConnector::disconnect(Endpoint endpoint) {
  End* end = find(endpoint);
  if (end == nullptr) return Status::InvalidState;
  if (end->state == State::Disconnected) {  // DREP
    end->state = State::Over;
    later([this, endpoint, peer = end->peer](Handler& handler) {
      End* other = find(peer);
      if (other != nullptr && other->state == State::Disconnecting) {
        other->state = State::Over;
        handler.on_disconnected(peer, false);
        wait(peer);
      }
      if (find(endpoint) != nullptr) wait(endpoint);
    });
    return Status::Ok;
  }
  if (end->state != State::Ready && end->state != State::Answered) return Status::InvalidState;
  end->state = State::Disconnecting;
  later([this, endpoint, peer = end->peer](Handler& handler) {
    End* other = find(peer);
    if (other == nullptr || other->state == State::Over || other->state == State::Disconnecting) {
      End* own = find(endpoint);
      if (own == nullptr || own->state != State::Disconnecting) return;
      own->state = State::Over;
      handler.on_disconnected(endpoint, false);
      wait(endpoint);
      return;
    }
    other->state = State::Disconnected;
    handler.on_disconnected(peer, false);
  });
  return Status::Ok;
}

inline void DirectConnector::drop(Endpoint endpoint) {
  End* end = find(endpoint);
  if (end == nullptr) return;
  switch (end->state) {
    case State::Asked:
    case State::Answered:
      if (end->is_datagram) {
        if (!end->is_active)
          static_cast<void>(reply(endpoint, DatagramReply{sidr::kRejected, 0, 0, {}}));
      } else {
        static_cast<void>(reject(endpoint, rej::kConsumerDefined, {}));
      }
      break;
    case State::Ready:
    case State::Disconnected: static_cast<void>(disconnect(endpoint)); break;
    case State::Disconnecting:
    case State::Over: break;
  }
  ends_.erase(endpoint);
  timers_.erase(endpoint);
}

}  // namespace ib::services::rdma_cm
