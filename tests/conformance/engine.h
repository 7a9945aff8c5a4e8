// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Engine: one side of a test, a client of the fabric with its objects by handle. Executes the
// commands of peer_protocol.h.
#pragma once

#include "peer/peer_protocol.h"
#include "test_host.h"
#include "user/completion_queue.h"
#include "user/hca.h"
#include "user/queue_pair.h"

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace ib::conformance {

class Engine final : private user::EventSink {
 public:
  // Attaches and opens the only HCA of the node. Returns nullptr and sets `reason` on failure.
  static std::unique_ptr<Engine> attach(const HostSettings& settings, std::string& reason);
  ~Engine() override;  // destroys what is left, in dependency order

  Reply run(Command command, Message in);

  // The end of a process that does not clean up: the connections close, nothing is destroyed.
  void vanish();

 private:
  explicit Engine(const HostSettings& settings) : host_(settings) {}
  void on_event(const control::EventOut& event) override;

  template <class T>
  using Table = std::map<std::uint32_t, std::unique_ptr<T>>;
  template <class T>
  std::uint32_t add(Table<T>& table, std::unique_ptr<T> object) {
    const std::uint32_t handle = next_handle_++;
    table.emplace(handle, std::move(object));
    return handle;
  }
  template <class T>
  static T* find(const Table<T>& table, std::uint32_t handle) {
    const auto found = table.find(handle);
    return found == table.end() ? nullptr : found->second.get();
  }
  template <class T>
  static Reply destroy(Table<T>& table, std::uint32_t handle);
  template <class T>
  Reply created(Table<T>& table, Result<std::unique_ptr<T>> made);
  static Reply answer(Status status);

  Reply info();
  Reply memory(Command command, Message& in);
  Reply register_memory(Message& in);
  Reply completion(Command command, Message& in);
  Reply shared_receive(Command command, Message& in);
  Reply queue_pair(Command command, Message& in);
  Reply create_qp(Message& in);
  Reply post_send(Message& in);
  Reply poll(Message& in);
  Reply other(Command command, Message& in);
  Reply next_event(std::uint32_t milliseconds);
  Reply destroy(Kind kind, std::uint32_t handle);
  Reply destroy_all();
  control::RegMrIn to_registration(const RegionSpec& spec) const;

  TestHost host_;
  std::mutex event_lock_;
  std::condition_variable event_came_;
  std::deque<control::EventOut> events_;
  // Declared in this order since later objects hold pointers to earlier ones; ~Engine() ends the
  // threads of the process first.
  std::uint32_t next_handle_ = 1;
  std::map<std::uint64_t, std::size_t> mappings_;  // memory of the side
  std::unique_ptr<user::Process> process_;
  std::unique_ptr<user::Hca> hca_;
  Table<user::ProtectionDomain> pds_;
  Table<user::MemoryRegion> regions_;
  Table<user::MemoryWindow> windows_;
  Table<user::DeviceMemory> dms_;
  Table<user::CompletionChannel> channels_;
  Table<user::CompletionQueue> cqs_;
  Table<user::SharedReceiveQueue> srqs_;
  Table<user::QueuePair> qps_;
  Table<user::XrcDomain> xrcds_;
  Table<user::AddressHandle> addresses_;
};

}  // namespace ib::conformance
