// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Irp: a request to a device stack, with a result and a way back (docs/design/0010).
//
// The maker of an Irp (its originator) owns its memory, fills in the request and calls start().
// From then on the *request* has exactly one owner at a time: the holder of the IrpRef, or the
// IrpQueue it is parked in. The owner completes it, hands it on (call_driver), or parks it;
// dropping it in any other way is a bug that ~IrpRef reports. Completion runs the routines that
// were given on the way down, last given first, and ends with the originator's.
//
// Dispatch routines take an IrpRef and return nothing. NT's pair of rules ("return STATUS_PENDING
// iff you called IoMarkIrpPending") cannot be broken because neither half exists here.
//
// Thread rule: the fields belong to the owner. Only cancel() and is_cancelled() may be called by
// others; the caller makes sure that the memory lives (the originator, before it is done).
#pragma once

#include "base/assert.h"
#include "base/export.h"
#include "base/result.h"
#include "io/typed_pointer.h"
#include "platform/control_channel.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace ib::io {

using platform::NativeHandle;

class DeviceObject;
struct DriverObject;
class FileObject;
class IrpQueue;
class IrpRef;

// Shutdown: the last-chance notification (io/power_manager.h).
enum class Major : std::uint8_t { Create, Close, DeviceControl, Pnp, Power, Shutdown };
inline constexpr std::size_t kMajorCount = 6;

// The mode of the requestor, the only notion of protection context: a User request comes from a
// process, its input is hostile until checked and its addresses are those of that process.
enum class RequestorMode : std::uint8_t { Kernel, User };

inline constexpr std::size_t kMaxStackDepth = 8;
inline constexpr std::size_t kMaxHandles = 2;

// classes: allow(members) the fields of a request, as NT's IRP has them
class IB_DRIVER_API Irp {
 public:
  // Given by a driver that passes the request down; owns the request when it runs and ends with
  // pass_up(), complete() or fail() (now, or later: it may park the request, or send it down
  // again).
  using Completion = void (*)(IrpRef irp, void* context);
  // The originator's. The request is over: the Irp may be reused or freed.
  using OnDone = void (*)(Irp& irp, void* context);

  Irp() = default;
  Irp(const Irp&) = delete;
  Irp& operator=(const Irp&) = delete;
  ~Irp() { IB_ASSERT(!in_flight_); }

  // The request. Buffers belong to the originator and live until it is done.
  Major major = Major::DeviceControl;
  RequestorMode requestor_mode = RequestorMode::Kernel;
  std::uint32_t code = 0;   // DeviceControl: verbs::control::Code; Pnp, Power: io/pnp.h
  TypedPointer parameters;  // Pnp, Power
  FileObject* file = nullptr;
  std::span<const std::byte> in;
  std::span<std::byte> out;  // its capacity
  std::array<NativeHandle, kMaxHandles> in_handles;

  // The result.
  Status status = Status::Pending;
  std::uint64_t information = 0;  // handle of the created object, or a count
  std::size_t out_size = 0;       // bytes of `out` that were filled
  std::array<NativeHandle, kMaxHandles> out_handles;
  std::string reason;  // status is not Ok: the reason, in words

  // Starts the request; the result fields are cleared.
  [[nodiscard]] IrpRef start(OnDone on_done, void* context);

  // Requests an early end. If the request is parked it is completed with Cancelled, before this
  // returns; if it is parked later, then at that moment; else its owner completes it as it likes.
  void cancel();
  bool is_cancelled() const { return cancelled_.load(); }

  // Returns the input buffer as a `T`, or nothing if its size is not exactly that of a `T`.
  template <class T>
  std::optional<T> input() const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (in.size() != sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, in.data(), sizeof(T));  // the buffer may be unaligned
    return value;
  }
  // Fills the output buffer. Returns false if it is too small.
  template <class T>
  [[nodiscard]] bool set_output(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (out.size() < sizeof(T)) return false;
    std::memcpy(out.data(), &value, sizeof(T));
    out_size = sizeof(T);
    return true;
  }

 private:
  friend class IrpRef;
  friend class IrpQueue;
  friend void call_driver(DeviceObject& device, IrpRef irp, Completion completion, void* context);

  struct Location {
    DeviceObject* device;
    DriverObject* sender;   // whose code `completion` is; null: the originator's
    Completion completion;  // of the sender of the request to `device`; may be null
    void* context;
  };

  void push(DeviceObject& device, Completion completion, void* context);
  void run_completions();

  std::array<Location, kMaxStackDepth + 1> locations_{};  // one more: Verifier::device()
  std::size_t depth_ = 0;                                 // locations in use
  OnDone on_done_ = nullptr;
  void* on_done_context_ = nullptr;
  bool in_flight_ = false;

  // The queue that holds it, and its neighbours there (under that queue's lock).
  std::atomic<IrpQueue*> parked_in_ = nullptr;
  std::atomic<bool> cancelled_ = false;
  Irp* next_ = nullptr;
  Irp* previous_ = nullptr;
};

// The right and the duty to finish a request.
class IB_DRIVER_API IrpRef {
 public:
  IrpRef(IrpRef&& other) noexcept : irp_(std::exchange(other.irp_, nullptr)) {}
  IrpRef& operator=(IrpRef&&) = delete;
  ~IrpRef() { IB_ASSERT(irp_ == nullptr); }

  Irp* operator->() const { return irp_; }
  Irp& operator*() const { return *irp_; }

  // Nothing of the Irp may be touched afterwards.
  void complete(Status status, std::uint64_t information = 0) &&;
  // Completes with an error and the words for it; an output buffer that was begun is dropped.
  void fail(Status status, std::string reason) &&;
  // For completion routines: goes on with the result as it is.
  void pass_up() &&;

 private:
  friend class Irp;
  friend class IrpQueue;
  friend void call_driver(DeviceObject& device, IrpRef irp, Irp::Completion completion,
                          void* context);
  explicit IrpRef(Irp& irp) : irp_(&irp) {}
  Irp& take() { return *std::exchange(irp_, nullptr); }

  Irp* irp_;
};

}  // namespace ib::io
