// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The user HCA: what host_abi/ (libibverbs), WinVerbs and tests program against.
//
// One Process (process.h) per process and fabric; it opens HCAs (hca.h); HCAs create objects. Every
// object is owned by whoever holds the unique_ptr and must be destroyed with its destroy() first,
// which may refuse (DeviceBusy); dropping an object that was not destroyed leaves it to softibd's
// teardown when the process ends. Control calls wait for softibd (passive level). Posting, polling
// and arming do not.
//
// Calls that fail return a Status; `last_reason()` of this thread has the cause in words.
#pragma once

#include "base/result.h"
#include "platform/client_host.h"
#include "user/work_request.h"
#include "verbs/control.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ib::user {

namespace control = verbs::control;

class Process;
class Hca;
class CompletionQueue;
class SharedReceiveQueue;
class QueuePair;

// Text of the newest failure on this thread; empty if the failed call has none.
const std::string& last_reason();

// Receives asynchronous events. Called on the process's event thread, one at a time.
class EventSink {
 public:
  virtual ~EventSink() = default;
  // `event.cookie` is what the object was created with. DeviceFatal with file 0: softibd is gone.
  virtual void on_event(const control::EventOut& event) = 0;
};

struct ProcessOptions {
  std::string node;        // empty: the fabric's first
  std::string program;     // for people
  bool ca_events = false;  // also CaAdded and CaRemoved, of the HCAs of the node
};

class ProtectionDomain {
 public:
  ProtectionDomain(Hca& hca, std::uint32_t handle) : hca_(hca), handle_(handle) {}
  Hca& hca() const { return hca_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t index() const { return control::index_of(handle_); }
  Status destroy();
  // Address handles are of this process only, so it counts them itself; a domain that has some is
  // busy.
  void add_address() { addresses_.fetch_add(1, std::memory_order_relaxed); }
  void drop_address() { addresses_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  Hca& hca_;
  std::uint32_t handle_;
  std::atomic<std::uint32_t> addresses_{0};
};

class MemoryRegion {
 public:
  MemoryRegion(Hca& hca, std::uint32_t handle, const control::MrOut& out)
      : hca_(hca), handle_(handle), lkey_(out.lkey), rkey_(out.rkey) {}
  Hca& hca() const { return hca_; }
  std::uint32_t handle() const { return handle_; }
  std::uint32_t index() const { return control::index_of(handle_); }
  std::uint32_t lkey() const { return lkey_; }
  std::uint32_t rkey() const { return rkey_; }
  // `change`: ibv_rereg_mr_flags. New keys are in lkey()/rkey() afterwards.
  Status reregister(std::uint32_t change, const control::RegMrIn& to);
  Status destroy();

 private:
  Hca& hca_;
  std::uint32_t handle_;
  std::uint32_t lkey_;
  std::uint32_t rkey_;
};

class MemoryWindow {
 public:
  MemoryWindow(Hca& hca, std::uint32_t handle, std::uint32_t type, std::uint32_t rkey,
               std::uint32_t pd)
      : hca_(hca), handle_(handle), type_(type), rkey_(rkey), pd_(pd) {}
  std::uint32_t handle() const { return handle_; }
  std::uint32_t index() const { return control::index_of(handle_); }
  std::uint32_t type() const { return type_; }  // 1 or 2
  std::uint32_t rkey() const { return rkey_; }
  std::uint32_t pd() const { return pd_; }
  // The key that a bind may give it: the low byte of `key`; the rest is the window's
  // [IBA1 10.6.7.2.1].
  std::uint32_t next_rkey(std::uint32_t key) const { return (rkey_ & ~kTag) | (key & kTag); }
  void set_rkey(std::uint32_t rkey) {  // after a bind
    rkey_ = rkey;
    if (shown_ != nullptr) *shown_ = rkey;
  }
  // Where the owner of the window wants to see its key.
  void show_rkey(std::uint32_t* where) { shown_ = where; }
  Status destroy();

 private:
  static constexpr std::uint32_t kTag = 0xff;
  Hca& hca_;
  std::uint32_t handle_;
  std::uint32_t type_;
  std::uint32_t rkey_;
  std::uint32_t pd_;
  std::uint32_t* shown_ = nullptr;
};

// Memory of the HCA itself; all of it is mapped, so copies are plain.
class DeviceMemory {
 public:
  DeviceMemory(Hca& hca, std::uint32_t handle, std::byte* bytes, std::uint64_t length)
      : hca_(hca), handle_(handle), bytes_(bytes), length_(length) {}
  std::uint32_t handle() const { return handle_; }
  std::span<std::byte> bytes() const { return {bytes_, static_cast<std::size_t>(length_)}; }
  Status destroy();

 private:
  Hca& hca_;
  std::uint32_t handle_;
  std::byte* bytes_;
  std::uint64_t length_;
};

// Kept by this process alone: its content is checked with the ports in device memory.
class AddressHandle {
 public:
  AddressHandle(ProtectionDomain& pd, const verbs::AddressVector& av) : pd_(pd), av_(av) {
    pd_.add_address();
  }
  const verbs::AddressVector& av() const { return av_; }
  Status destroy();

 private:
  ProtectionDomain& pd_;
  verbs::AddressVector av_;
};

class XrcDomain {
 public:
  XrcDomain(Hca& hca, std::uint32_t handle) : hca_(hca), handle_(handle) {}
  std::uint32_t handle() const { return handle_; }
  Status destroy();

 private:
  Hca& hca_;
  std::uint32_t handle_;
};

// A completion channel: a pipe that gets one 8-byte native-endian number per event: the index of
// the completion queue.
class CompletionChannel {
 public:
  CompletionChannel(Process& process, std::uint32_t handle, platform::NativeHandle read_end)
      : process_(process), handle_(handle), read_end_(std::move(read_end)) {}
  std::uint32_t handle() const { return handle_; }
  std::uint32_t index() const { return control::index_of(handle_); }
  int fd() const { return read_end_.get(); }
  int release_fd() { return read_end_.release(); }  // the caller closes it from now on
  Status destroy();

 private:
  Process& process_;
  std::uint32_t handle_;
  platform::NativeHandle read_end_;
};

struct SrqOptions {
  verbs::SrqType type = verbs::SrqType::Basic;
  const ProtectionDomain* pd = nullptr;
  const XrcDomain* xrcd = nullptr;
  CompletionQueue* cq = nullptr;
  std::uint32_t max_wr = 0;
  std::uint32_t max_sge = 0;
  std::uint32_t limit = 0;
  std::uint64_t cookie = 0;
};

struct QpOptions {
  verbs::QpType type = verbs::QpType::Rc;
  const ProtectionDomain* pd = nullptr;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  SharedReceiveQueue* srq = nullptr;
  const XrcDomain* xrcd = nullptr;
  control::QpCaps caps;
  bool signal_all = false;
  bool single_threaded = false;  // the application promises it (thread domain)
  std::uint32_t flags = 0;       // control::qp_flag
  std::uint64_t cookie = 0;
};

}  // namespace ib::user
