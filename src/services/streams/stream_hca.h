// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// StreamHca: a kernel client that owns the ends of streams at one HCA: their queue pairs,
// completion queues and memory.
//
//   Closed -> Opening -> Open -> Closing -> Closed
//
// It is opened with the first stream there, and stays. Its requests are raw ones of the control
// interface: softibd neither posts nor polls, so it has no state for that.
//
// Thread rule: the executor's thread, dispatch level.
#pragma once

#include "al/al.h"
#include "fabric/model.h"
#include "services/streams/stream_memory.h"

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ib::services {

// classes: allow(members) the client, its objects, and what waits for it
class StreamHca {
 public:
  // `on_gone`: it was pulled out.
  StreamHca(al::System& system, io::DriverObject& driver, const fabric::Fabric& fabric,
            const fabric::Hca& hca, std::function<void()> on_gone);
  StreamHca(const StreamHca&) = delete;
  StreamHca& operator=(const StreamHca&) = delete;
  ~StreamHca();

  const fabric::Hca& hca() const { return hca_; }
  // Calls `then` at once or later; if it could not be opened, with the error.
  using OnOpen = std::function<void(Status status, const std::string& reason)>;
  void open(OnOpen then);
  // Calls `then` once all requests have returned and the HCA is closed; at once if it is not open.
  // No stream has an end here.
  void close(std::function<void()> then);
  // It is to be removed: it is not opened until let_back().
  void let_go() { is_held_ = true; }
  void let_back() { is_held_ = false; }
  bool is_closed() const { return state_ == State::Closed; }

  // Streams that have an end here.
  void add_user() { ++users_; }
  void remove_user();
  std::uint32_t users() const { return users_; }

  // Requests; it is open. Handles.
  template <class In, class Out>
  void call(verbs::control::Code code, const In& in, Out& out, io::IrpRef irp) {
    send(code, bytes_of(in), room_of(out), std::move(irp));
  }
  template <class In>
  void call(verbs::control::Code code, const In& in, io::IrpRef irp) {
    send(code, bytes_of(in), {}, std::move(irp));
  }
  std::uint32_t pd() const { return pd_; }
  std::uint32_t send_cq() const { return send_cq_; }  // of all queue pairs; nothing comes to it
  StreamMemory& places() { return places_; }
  StreamMemory& rings() { return rings_; }

 private:
  enum class State : std::uint8_t { Closed, Opening, Open, Closing };

  void send(verbs::control::Code code, std::span<const std::byte> in, std::span<std::byte> out,
            io::IrpRef irp);
  static void returned(io::IrpRef irp, void* context);
  void on_step(void (StreamHca::*next)());
  void attached();
  void opened();
  void has_pd();
  void has_cq();
  void finish_opening();
  void fail_opening();
  void close_if_idle();
  void close_client();
  void end();

  al::System& system_;
  const fabric::Fabric& fabric_;
  const fabric::Hca& hca_;
  State state_ = State::Closed;
  bool is_held_ = false;
  std::uint32_t users_ = 0;
  std::uint32_t under_way_ = 0;
  al::Al al_;
  al::Ca ca_;
  struct Opening {
    io::Irp irp;
    verbs::control::CreateCqIn cq_in;
    verbs::control::CqOut cq;
    verbs::control::CreateQpIn qp_in;
    verbs::control::QpOut qp;
    Status status = Status::Ok;
    std::string reason;
    std::vector<OnOpen> waiting;
  } opening_;
  std::vector<std::function<void()>> on_closed_;
  std::uint32_t pd_ = 0;
  std::uint32_t send_cq_ = 0;
  StreamMemory places_;
  StreamMemory rings_;
};

}  // namespace ib::services
