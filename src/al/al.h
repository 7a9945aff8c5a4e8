// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The access layer: the verbs for kernel clients, that is for drivers (docs/design/0006).
//
// Al (IbOpenAl) is a client: a session of its own in softibd, like that of a process. It
// keeps the caller's driver loaded until it is closed. Ca (IbOpenCa) is an open HCA: a file on the
// top of its device stack, found by name. verbs.h has the objects: public structures, filled in
// when their creation has succeeded.
//
// Every control operation is an IRP that the caller makes and starts, and may be issued at dispatch
// level; it pends if it must, can be cancelled, and ends as {status, information}. Inputs and the
// structures that are filled in must live until then. It is the request that an ioctl makes, with
// the same handler, but without copying buffers.
//
// Thread rule: the executor's thread (System::executor), dispatch level. Nothing here blocks.
#pragma once

#include "al/data_plane.h"
#include "al/event_wait.h"
#include "al/objects.h"
#include "al/refusal.h"
#include "al/system.h"
#include "base/buffers.h"
#include "base/export.h"
#include "hca/memory/memory_plane.h"
#include "io/client_file.h"
#include "verbs/control.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ib::al {

namespace control = verbs::control;

class Ca;
class ServiceFile;

class IB_DRIVER_API Al {
 public:
  // Asynchronous events of HCAs, ports and objects [IBA1 11.6.3], and CaAdded and CaRemoved. A
  // client that is too slow gets EventsLost in place of those that it missed. May call anything of
  // the access layer.
  using OnEvent = EventWait::OnEvent;

  // `driver`: whose code is called back; its module stays until close() is done.
  Al(System& system, io::DriverObject& driver);
  Al(const Al&) = delete;
  Al& operator=(const Al&) = delete;
  ~Al();  // not open

  // Enters the client in the tables of a virtual host. `name` is for people (`softib status`).
  // NotFound: no such host; InsufficientResources: no room; InvalidState: it is open.
  void open(std::string_view node, std::string_view name, io::IrpRef irp);
  // DeviceBusy: CAs are open; InvalidState: it is being opened or closed. Whatever the client had
  // is gone when it ends.
  void close(io::IrpRef irp);
  bool is_open() const { return data_ != nullptr && zero_->is_open(); }
  // The HCAs of the host when this was opened; later changes come as events.
  std::span<const control::CaName> cas() const {
    return std::span(attach_out_.cas).first(attach_out_.ca_count);
  }
  void set_on_event(OnEvent on_event) { events_.set_on_event(std::move(on_event)); }

  System& system() const { return system_; }
  hca::MemoryPlane& plane() { return data_->plane(); }
  Poster& poster() { return data_->poster(); }
  Objects& objects() { return objects_; }  // for verbs.h

 private:
  friend class Ca;
  friend class EventWait;
  friend class ServiceFile;
  static void zero_created(io::IrpRef irp, void* context);
  static void attached(io::IrpRef irp, void* context);
  static void attach_undone(io::IrpRef irp, void* context);
  static void zero_closed(io::IrpRef irp, void* context);
  void send_close();
  // Returns true if the event is not only the access layer's own business.
  bool take_event(const control::EventOut& event);

  System& system_;
  io::DriverObject& driver_;
  io::Client client_;
  std::optional<io::ClientFile> zero_;
  control::AttachIn attach_in_;
  control::AttachOut attach_out_;
  Refusal refusal_;
  EventWait events_{*this};
  std::uint32_t open_cas_ = 0;
  std::uint32_t last_file_ = 0;
  std::unique_ptr<DataPlane> data_;  // while it is open
  Objects objects_;
};

class IB_DRIVER_API Ca {
 public:
  explicit Ca(Al& al) : al_(al) {}
  Ca(const Ca&) = delete;
  Ca& operator=(const Ca&) = delete;
  ~Ca() { IB_ASSERT(!file_); }

  // `path`: \Device\ibal\<CA GUID> or \Device\ibal (IbOpenCa). NotFound: no such HCA there.
  void open(std::string_view path, io::IrpRef irp);
  // Takes away all that was created through it, in dependency order. DeviceBusy: requests are under
  // way, or a Cm or Sa (al/service_file.h) is open; InvalidState: it is being opened or closed.
  void close(io::IrpRef irp);
  bool is_open() const { return file_ && file_->is_open(); }
  const control::OpenOut& info() const { return info_; }
  std::uint32_t file() const { return file_ ? file_->number() : 0; }  // as events name it
  Al& al() const { return al_; }

  // Sends a MAD to the agents of a port (Code::LocalMad); it is answered before this returns.
  void local_mad(const control::MadIn& in, control::MadOut& out, io::IrpRef irp) {
    call(control::Code::LocalMad, in, out, std::move(irp));
  }
  // Any request of verbs/control.h that an HCA answers, for what verbs.h has no structure.
  template <class In, class Out>
  void call(control::Code code, const In& in, Out& out, io::IrpRef irp) {
    send(code, bytes_of(in), room_of(out), std::move(irp));
  }
  template <class In>
  void call(control::Code code, const In& in, io::IrpRef irp) {
    send(code, bytes_of(in), {}, std::move(irp));
  }
  // `completion` may be null; else it calls count_return().
  void send(control::Code code, std::span<const std::byte> in, std::span<std::byte> out,
            io::IrpRef irp, io::Irp::Completion completion = nullptr, void* context = nullptr);
  void count_return(io::IrpRef& irp);

 private:
  friend class ServiceFile;
  static void opened(io::IrpRef irp, void* context);
  static void closed(io::IrpRef irp, void* context);
  static void returned(io::IrpRef irp, void* context);

  Al& al_;
  std::optional<io::ClientFile> file_;
  control::OpenOut info_;
  std::uint32_t open_services_ = 0;
};

}  // namespace ib::al
